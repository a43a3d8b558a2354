/* SPDX-License-Identifier: Apache-2.0 */
/* fyaml_leaks.h - for the one source file of a fuzzer that reads YAML. */
#ifndef STK_TESTS_FUZZ_FYAML_LEAKS_H
#define STK_TESTS_FUZZ_FYAML_LEAKS_H

/* libfyaml 0.7 loses a buffer on some of its own error paths; our leaks are still reported. */
const char *__lsan_default_suppressions(void); // NOLINT(bugprone-reserved-identifier,cert-dcl37-c)
const char *__lsan_default_suppressions(void)  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c)
{
    return "leak:libfyaml";
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* xid.c - classes follow what NVIDIA's public XID catalogue advises first: restart the program
 * (app), nothing or later (transient), reset the GPU, restart the machine or look at the hardware
 * (hardware).
 */
#include "gpuview/xid.h"

#include <stddef.h>

static const struct stk_xid table[] = {
    {8, STK_XID_APP, "a program's work on the GPU did not end in time"},
    {11, STK_XID_APP, "a program sent commands the GPU cannot read"},
    {13, STK_XID_APP, "a kernel failed, mostly by an access out of bounds"},
    {25, STK_XID_APP, "a program sent illegal commands"},
    {31, STK_XID_APP, "a kernel used an address that is not mapped"},
    {32, STK_XID_APP, "a program's command stream was corrupt"},
    {37, STK_XID_TRANSIENT, "the driver's firmware met a request it does not know"},
    {38, STK_XID_TRANSIENT, "the driver's firmware was late"},
    {39, STK_XID_APP, "a copy engine failed on a program's request"},
    {40, STK_XID_APP, "a copy engine failed on a program's request"},
    {41, STK_XID_APP, "a copy engine failed on a program's request"},
    {43, STK_XID_APP, "a program's channel was stopped after an error of its own"},
    {44, STK_XID_TRANSIENT, "a fault came during a context switch"},
    {45, STK_XID_APP, "a program's channel was removed, after its end or an earlier error"},
    {46, STK_XID_HARDWARE, "the GPU stopped working and needs a reset"},
    {48, STK_XID_HARDWARE, "memory had an error that cannot be corrected"},
    {54, STK_XID_HARDWARE, "a power cable is missing"},
    {60, STK_XID_APP, "the video unit failed on a program's request"},
    {61, STK_XID_TRANSIENT, "the GPU's controller reported a breakpoint or warning"},
    {62, STK_XID_HARDWARE, "the GPU's controller halted; it needs a reset"},
    {63, STK_XID_TRANSIENT, "a bad row or page of memory was put out of use"},
    {64, STK_XID_HARDWARE, "a bad row or page of memory could not be put out of use"},
    {66, STK_XID_TRANSIENT, "the driver made an access that is not allowed"},
    {67, STK_XID_TRANSIENT, "the driver made an access that is not allowed"},
    {68, STK_XID_APP, "the video decoder failed on a program's request"},
    {69, STK_XID_APP, "a program used a class of commands wrongly"},
    {74, STK_XID_HARDWARE, "an NVLink connection failed"},
    {78, STK_XID_TRANSIENT, "a virtual GPU did not start"},
    {79, STK_XID_HARDWARE, "the GPU has fallen off the bus; the machine must be restarted"},
    {80, STK_XID_APP, "data sent to the GPU was corrupt"},
    {92, STK_XID_TRANSIENT, "memory has many errors that could be corrected"},
    {93, STK_XID_TRANSIENT, "the GPU's own flash memory is worn"},
    {94, STK_XID_TRANSIENT, "a memory error hit one program only, which must start again"},
    {95, STK_XID_HARDWARE, "a memory error may have hit every program on the GPU"},
    {109, STK_XID_HARDWARE, "a context switch did not end; the GPU needs a reset"},
    {110, STK_XID_HARDWARE, "a security fault; the GPU needs a reset"},
    {119, STK_XID_HARDWARE, "the GPU's system processor does not answer; it needs a reset"},
    {120, STK_XID_HARDWARE, "the GPU's system processor failed; it needs a reset"},
    {121, STK_XID_TRANSIENT, "the link to the CPU had an error that was corrected"},
    {136, STK_XID_HARDWARE, "an NVLink connection could not be set up"},
    {137, STK_XID_APP, "a program reached over NVLink for what it may not touch"},
    {140, STK_XID_HARDWARE, "memory had an error that was not recovered from"},
    {141, STK_XID_TRANSIENT, "a fast path of CUDA failed"},
    {143, STK_XID_HARDWARE, "the GPU did not start"},
    {144, STK_XID_HARDWARE, "an NVLink unit failed"},
    {145, STK_XID_HARDWARE, "an NVLink unit failed"},
    {146, STK_XID_HARDWARE, "an NVLink unit failed"},
    {147, STK_XID_HARDWARE, "an NVLink unit failed"},
    {148, STK_XID_HARDWARE, "an NVLink unit failed"},
    {149, STK_XID_HARDWARE, "an NVLink unit failed"},
    {150, STK_XID_HARDWARE, "an NVLink unit failed"},
    {151, STK_XID_HARDWARE, "encryption keys could not be changed; the machine must be restarted"},
    {154, STK_XID_TRANSIENT, "the driver changed its advice on how to recover the GPU"},
    {155, STK_XID_HARDWARE, "NVLink software reported an error; the GPU needs a reset"},
    {156, STK_XID_HARDWARE, "a part of the GPU was put out of use; it needs a reset"},
    {157, STK_XID_HARDWARE, "a part of the GPU could not be put out of use"},
    {158, STK_XID_HARDWARE, "the GPU did not answer at all; it needs a reset"},
    {160, STK_XID_TRANSIENT, "a memory channel was put out of use"},
    {161, STK_XID_HARDWARE, "a memory channel could not be put out of use"},
    {167, STK_XID_HARDWARE, "the PCIe connection timed out"},
    {168, STK_XID_HARDWARE, "the GPU has less memory than it should"},
    {169, STK_XID_HARDWARE, "the GPU's security processor halted"},
    {171, STK_XID_HARDWARE, "memory had an error that cannot be corrected"},
    {172, STK_XID_HARDWARE, "on-chip memory had an error that cannot be corrected"},
};

/* Ranges whose members differ only in the number of the unit. */
static const struct {
    uint32_t first, last;
    struct stk_xid x;
} ranges[] = {
    {70, 72, {0, STK_XID_APP, "a copy engine failed on a program's request"}},
    {75, 77, {0, STK_XID_APP, "a copy engine failed on a program's request"}},
    {82, 91, {0, STK_XID_APP, "a media or copy unit failed on a program's request"}},
    {96, 105, {0, STK_XID_APP, "a media unit failed on a program's request"}},
    {106, 107, {0, STK_XID_TRANSIENT, "a test message"}},
    {126, 135, {0, STK_XID_APP, "a copy engine failed on a program's request"}},
    {139, 139, {0, STK_XID_APP, "a media unit failed on a program's request"}},
};

static const struct stk_xid unlisted = {UINT32_MAX, STK_XID_TRANSIENT,
                                        "the driver reported an error"};

const struct stk_xid *stk_xid_find(uint32_t code)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].code == code)
            return &table[i];
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return &ranges[i].x;
    return &unlisted;
}

bool stk_xid_recovers(uint32_t code)
{
    static const uint32_t never[] = {48,  54,  64,  79,  95,  140, 143, 151,
                                     157, 158, 161, 167, 168, 169, 171, 172};

    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
        if (never[i] == code)
            return false;
    return true;
}

const char *stk_xid_class_name(enum stk_xid_class kind)
{
    static const char *const names[] = {"app", "transient", "hardware"};

    return (unsigned)kind < STK_XID_CLASS_MAX ? names[kind] : "?";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c - only the job's own GPUs, where cgroups have no devices controller (v2).
 *
 * The kernel asks a program, attached to the cgroup, at every open() and mknod() of a device. Ours
 * says no to the GPUs that are not the job's and yes to all else; what was attached above keeps its
 * say. The program is put together here, a handful of instructions, and goes with the cgroup. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/shim.h"

/* The fields of what the program is called with. */
#define TYPE 0
#define MAJOR 4
#define MINOR 8

struct program {
    struct bpf_insn code[16 + STK_SHIM_MAX_GPUS];
    uint32_t n;
};

static void add(struct program *p, unsigned op, unsigned dst, unsigned src, int16_t off,
                int32_t imm)
{
    struct bpf_insn *i = &p->code[p->n++];

    i->code = (uint8_t)op;
    i->dst_reg = dst & 0xfU;
    i->src_reg = src & 0xfU;
    i->off = off;
    i->imm = imm;
}

static void load(struct program *p, int16_t field)
{
    add(p, BPF_LDX | BPF_W | BPF_MEM, BPF_REG_2, BPF_REG_1, field, 0);
}

static void answer(struct program *p, int32_t yes)
{
    add(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, yes);
    add(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void write_program(struct program *p, const struct stk_launch *l)
{
    const unsigned same = BPF_JMP | BPF_JEQ | BPF_K, less = BPF_JMP | BPF_JLT | BPF_K;

    load(p, TYPE);
    add(p, BPF_ALU | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xffff);
    add(p, same, BPF_REG_2, 0, 2, BPF_DEVCG_DEV_CHAR);
    answer(p, 1);
    load(p, MAJOR);
    add(p, same, BPF_REG_2, 0, 2, STK_NVIDIA_MAJOR);
    answer(p, 1);
    load(p, MINOR);
    add(p, less, BPF_REG_2, 0, 2, STK_NVIDIA_GPUS);
    answer(p, 1);
    for (uint32_t i = 0; i < l->n_gpus; i++) /* past the ones after it and the "no" */
        add(p, same, BPF_REG_2, 0, (int16_t)(l->n_gpus - 1 - i + 2), (int32_t)l->gpus[i].minor);
    answer(p, 0);
    answer(p, 1);
}

static int bpf(int cmd, union bpf_attr *attr)
{
    long rc = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

    return rc < 0 ? -errno : (int)rc;
}

static int load_program(const struct stk_launch *l)
{
    struct program p = {.n = 0};
    union bpf_attr a = {0};

    write_program(&p, l);
    a.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    a.insns = (uint64_t)(uintptr_t)p.code;
    a.insn_cnt = p.n;
    a.license = (uint64_t)(uintptr_t) "Apache-2.0";
    (void)memcpy(a.prog_name, "stoker_gpus", sizeof("stoker_gpus"));
    return bpf(BPF_PROG_LOAD, &a);
}

int stk_fence(const char *path, const struct stk_launch *l, int *io_program)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), program, rc;
    union bpf_attr a = {0};

    if (dir < 0)
        return -errno;
    program = load_program(l);
    rc = program < 0 ? program : 0;
    if (rc == 0) {
        a.target_fd = (uint32_t)dir;
        a.attach_bpf_fd = (uint32_t)program;
        a.attach_type = BPF_CGROUP_DEVICE;
        a.attach_flags = BPF_F_ALLOW_MULTI;
        if (*io_program >= 0) {
            a.attach_flags |= BPF_F_REPLACE;
            a.replace_bpf_fd = (uint32_t)*io_program;
        }
        rc = bpf(BPF_PROG_ATTACH, &a);
    }
    (void)close(dir);
    if (rc < 0) {
        if (program >= 0)
            (void)close(program);
        return rc;
    }
    if (*io_program >= 0)
        (void)close(*io_program);
    *io_program = program;
    return 0;
}

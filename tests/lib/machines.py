# SPDX-License-Identifier: Apache-2.0
"""Machines that are not there: what the stand-in for the driver (fake_links.c) and hwloc say about them.

    m = dgx_h100()
    env = m.write(folder)       # the files, and the environment for a daemon that believes them

A machine has two packages with a NUMA node each, or one of each. GPUs are given by the PCIe bridges above them, from the
root down; what two GPUs have in common on PCIe follows from that, for the driver as for hwloc.
"""
import dataclasses
import itertools
import pathlib

BOARD, PIX, PXB, PHB, NODE, SYS = 0, 10, 20, 30, 40, 50


@dataclasses.dataclass
class Gpu:
    numa: int
    bus: int          # PCI bus: its address is 0000:BUS:00.0
    bridges: tuple    # buses of the bridges above, the root's first

    @property
    def pci(self):
        return f"0000:{self.bus:02x}:00.0"


@dataclasses.dataclass
class Machine:
    gpus: list
    cpus: list                                  # of each NUMA node
    links: dict = dataclasses.field(default_factory=dict)     # (a, b) -> NVLinks
    switches: int = 0                           # NVLinks of each GPU to switches
    mem_mib: int = 524288                       # of a NUMA node
    model: str = "AMD EPYC 7742"

    def path(self, a, b):
        p, q = self.gpus[a], self.gpus[b]
        if p.bridges[0] != q.bridges[0]:
            return NODE if p.numa == q.numa else SYS
        common = sum(1 for _ in itertools.takewhile(lambda x: x[0] == x[1], zip(p.bridges, q.bridges)))
        if common == 1:
            return PHB
        return PIX if max(len(p.bridges), len(q.bridges)) - common <= 1 else PXB

    def driver(self):
        """The file "topology" of fake_links.c."""
        lines = [f"gpus {len(self.gpus)}"]
        for i, g in enumerate(self.gpus):
            lines.append(f"pci {i} 0000{g.pci.upper()}")
            lines += [f"switch {i} {self.switches}"] if self.switches else []
        lines += [f"link {a} {b} {n}" for (a, b), n in self.links.items()]
        lines += [f"path {a} {b} {self.path(a, b)}" for a, b in itertools.combinations(range(len(self.gpus)), 2)]
        return "\n".join(lines) + "\n"

    # ---- hwloc ----

    def _sets(self, numas):
        cpus = sum(1 << c for n in numas for c in self.cpus[n])
        nodes = sum(1 << n for n in numas)
        return " ".join(f'{p}{w}="0x{v:x}"' for p in ("", "complete_") for w, v in (("cpuset", cpus), ("nodeset", nodes)))

    def _pcis(self, numa, above):
        """Bridges and GPUs right below these bridges."""
        gpus = [g for g in self.gpus if g.numa == numa and g.bridges[:len(above)] == above]
        out = ""
        for g in gpus:
            if g.bridges == above:
                out += f'<object type="PCIDev" gp_index="{next(self.gp)}" pci_busid="{g.pci}" pci_type="0302 [10de:2330] [10de:16c1] a1"/>\n'
        for bus in sorted({g.bridges[len(above)] for g in gpus if len(g.bridges) > len(above)}):
            kind = f'bridge_type="1-1" pci_busid="0000:{above[-1]:02x}:{bus % 32:02x}.0" pci_type="0604 [10b5:8747] [0000:0000] ca"' \
                if above else 'bridge_type="0-1"'
            last = max([g.bus for g in gpus if bus in g.bridges] + [bus])
            out += (f'<object type="Bridge" gp_index="{next(self.gp)}" {kind} depth="{len(above)}" bridge_pci="0000:[{bus:02x}-{last:02x}]">\n'
                    + self._pcis(numa, (*above, bus)) + "</object>\n")
        return out

    def hwloc(self):
        """The machine as hwloc's XML."""
        self.gp = itertools.count(1)
        every = range(len(self.cpus))
        out = ('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">\n'
               f'<object type="Machine" os_index="0" {self._sets(every)} allowed_cpuset="0x{sum(1 << c for n in every for c in self.cpus[n]):x}" '
               f'allowed_nodeset="0x{(1 << len(self.cpus)) - 1:x}" gp_index="{next(self.gp)}">\n')
        for n in every:
            out += f'<object type="Package" os_index="{n}" {self._sets([n])} gp_index="{next(self.gp)}">\n<info name="CPUModel" value="{self.model}"/>\n'
            out += f'<object type="NUMANode" os_index="{n}" {self._sets([n])} gp_index="{next(self.gp)}" local_memory="{self.mem_mib << 20}"/>\n'
            for c in self.cpus[n]:
                sets = f'cpuset="0x{1 << c:x}" complete_cpuset="0x{1 << c:x}" nodeset="0x{1 << n:x}" complete_nodeset="0x{1 << n:x}"'
                out += (f'<object type="Core" os_index="{c}" {sets} gp_index="{next(self.gp)}">'
                        f'<object type="PU" os_index="{c}" {sets} gp_index="{next(self.gp)}"/></object>\n')
            out += self._pcis(n, ()) + "</object>\n"
        return out + "</object>\n</topology>\n"

    def write(self, folder):
        folder = pathlib.Path(folder)
        (folder / "topology").write_text(self.driver())
        (folder / "hwloc.xml").write_text(self.hwloc())
        return {"HWLOC_XMLFILE": str(folder / "hwloc.xml")}


def _quads():
    """Eight GPUs: four to a NUMA node, two to a PCIe switch of their own host bridge."""
    return [Gpu(i // 4, 0x10 * (i // 2 + 1) + 3 + i % 2, (0x10 * (i // 2 + 1), 0x10 * (i // 2 + 1) + 1)) for i in range(8)]


TWO = [range(16), range(16, 32)]


def dgx_h100():
    """All GPUs on NVSwitches."""
    return Machine(_quads(), TWO, switches=18)


def two_islands():
    """Two groups of four, all linked within a group."""
    return Machine(_quads(), TWO, links={(a, b): 4 for a, b in itertools.combinations(range(8), 2) if a // 4 == b // 4})


def dgx1():
    """DGX-1 with V100: a hybrid cube mesh, one or two links between some pairs."""
    links = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1,
             (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2}
    return Machine(_quads(), TWO, links=links, model="Intel Xeon E5-2698 v4")


def pcie():
    """Four GPUs without NVLink; of each NUMA node's two, one is behind a switch."""
    return Machine([Gpu(0, 0x05, (0x00,)), Gpu(0, 0x08, (0x00, 0x06)), Gpu(1, 0x85, (0x80,)), Gpu(1, 0x88, (0x80, 0x86))], [range(4), range(4, 8)])


def one():
    return Machine([Gpu(0, 0x05, (0x00,))], [range(4)])


def this(*cpus):
    """Two NUMA nodes with these CPUs, which the real machine has, and two GPUs each."""
    return Machine([Gpu(0, 0x05, (0x00,)), Gpu(0, 0x06, (0x00,)), Gpu(1, 0x85, (0x80,)), Gpu(1, 0x86, (0x80,))], [[c] for c in cpus])

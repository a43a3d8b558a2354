# SPDX-License-Identifier: Apache-2.0
"""The Debian package: built for real, its contents, its scripts, and that it is the same twice."""
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOAK = os.environ.get("STOKER_SOAK") == "1"

# what must be in the package, and the sources without which it cannot be
FILES = [
    ("usr/bin/stoker", "src/cli"),
    ("usr/libexec/stoker/stokerd", "src/daemon"),
    ("usr/libexec/stoker/stoker-shim", "src/shim"),
    ("usr/libexec/stoker/stoker-gpu", "src/gpu"),
    ("usr/libexec/stoker/stoker-lp", "src/lp"),
    ("usr/libexec/stoker/stoker-libslurm", "/usr/include/slurm/slurm.h"),
    ("usr/libexec/stoker/slurm/job_submit_stoker.so", "/usr/include/slurm/slurm.h"),
    ("usr/libexec/stoker/slurm/sched_stoker.so", "/usr/include/slurm/slurm.h"),
    ("usr/libexec/stoker/slurm/jobcomp_stoker.so", "/usr/include/slurm/slurm.h"),
    ("lib/systemd/system/stoker.service", "contrib"),
    ("usr/lib/tmpfiles.d/stoker.conf", "contrib"),
    ("etc/stoker/stoker.yaml", "contrib"),
    ("usr/lib/python3/dist-packages/stoker.py", "sdk"),
    ("usr/share/doc/stoker/copyright", "contrib"),
    ("usr/share/doc/stoker/changelog.gz", "contrib"),
    ("usr/share/doc/stoker/guide/getting-started.md", "docs/guide"),
    ("usr/share/doc/stoker/examples/plain-python/fit.py", "examples"),
    ("usr/share/man/man1/stoker.1.gz", "src/cli/commands.c"),
    ("usr/share/man/man1/stoker-submit.1.gz", "src/cli/commands.c"),
    ("usr/share/bash-completion/completions/stoker", "src/cli/commands.c"),
    ("usr/share/zsh/vendor-completions/_stoker", "src/cli/commands.c"),
    ("usr/share/fish/vendor_completions.d/stoker.fish", "src/cli/commands.c"),
]


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def package():
    if not shutil.which("dpkg-shlibdeps") or not shutil.which("meson"):
        pytest.skip("no dpkg-dev or meson here")
    env = {k: v for k, v in os.environ.items() if k not in ("DESTDIR", "DEBFULLNAME", "DEBEMAIL")}
    folder = ROOT / "build-deb-test"  # all of it as gcc -O0 makes it, which has warnings of its own
    path = output(ROOT / "scripts" / "deb", "--build", folder, "--", "-Doptimization=0", "--werror", env=env)
    return pathlib.Path(path.strip())


@pytest.fixture(scope="module")
def listing(package):
    """name -> (mode, owner), for everything in the package."""
    entries = [line.split(None, 5) for line in output("dpkg-deb", "-c", package).splitlines()]
    return {e[5][2:]: (e[0], e[1]) for e in entries}


@pytest.mark.parametrize("name, source", FILES, ids=[name for name, _ in FILES])
def test_everything_is_in_its_place(listing, name, source):
    if not (ROOT / source).exists():
        pytest.skip("%s is not in this tree" % source)
    assert name in listing


def test_files_belong_to_root_and_only_programs_are_executable(listing):
    assert {owner for _, owner in listing.values()} == {"root/root"}
    for name, (mode, _) in listing.items():
        assert mode.startswith("l") or mode[8] != "w" and "s" not in mode, name
        if mode.startswith("-") and name.startswith(("etc/", "lib/", "usr/lib/", "usr/share/man/")):
            assert mode == "-rw-r--r--", name


def test_it_names_the_libraries_it_needs(package):
    depends = output("dpkg-deb", "-f", package, "Depends")
    for library in ("libc6 (>=", "libmicrohttpd12 (>=", "libsqlite3-0 (>=", "libuv1 (>=", "libnettle8", "libhwloc15 (>="):
        assert library in depends
    assert output("dpkg-deb", "-f", package, "Version").strip() == output(
        "meson", "introspect", "--projectinfo", ROOT / "meson.build").split('"version": "')[1].split('"')[0]


def test_slurms_library_is_for_those_who_have_slurm(package, listing):
    if "usr/libexec/stoker/stoker-libslurm" not in listing:
        pytest.skip("built without libslurm-dev")
    assert "libslurm" not in output("dpkg-deb", "-f", package, "Depends") and "libslurm" in output("dpkg-deb", "-f", package, "Suggests")


def control(package, name):
    return output("dpkg-deb", "-I", package, name)


def test_the_configuration_is_the_operators_and_says_nothing_by_itself(package, tmp_path):
    assert control(package, "conffiles") == "/etc/stoker/stoker.yaml\n"
    output("dpkg-deb", "-x", package, tmp_path)
    lines = (tmp_path / "etc/stoker/stoker.yaml").read_text(encoding="utf-8").splitlines()
    assert lines and all(not line or line.startswith("#") for line in lines)
    # remarks begin with "# ", keys with "#" and those below them with "#  "
    keys = yaml.safe_load("\n".join(line[1:] for line in lines if re.match(r"#(\S|  \S)", line)))
    assert {"listen", "operators", "policy", "gpus", "retention"} <= set(keys)


@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm"])
def test_scripts_are_sound_and_enable_nothing(package, name, tmp_path):
    script = control(package, name)
    assert script.startswith("#!/bin/sh\n") and "\nset -e\n" in script
    (tmp_path / name).write_text(script)
    output("sh", "-n", tmp_path / name)
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("#"))
    assert "enable" not in code and "start stoker" not in code.replace("restart stoker", "")


def test_the_service_leaves_jobs_alone(package, tmp_path):
    output("dpkg-deb", "-x", package, tmp_path)
    text = (tmp_path / "lib/systemd/system/stoker.service").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for line in ("ExecStart=/usr/bin/stoker serve --config /etc/stoker/stoker.yaml", "KillMode=process", "OOMPolicy=continue", "Delegate=yes",
                 "StartLimitIntervalSec=0"):
        assert line in lines
    assert any(line.startswith("After=") and "munge.service slurmctld.service" in line for line in lines)
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--root", tmp_path, "stoker.service"],
                              capture_output=True, text=True, check=False)
        # other units are missing there; what matters is that every line was understood
        assert not any(word in done.stderr for word in ("Unknown", "parse", "Invalid", "ignoring")), done.stderr


def test_the_python_module_imports_from_the_package(package, tmp_path):
    output("dpkg-deb", "-x", package, tmp_path)
    folder = tmp_path / "usr/lib/python3/dist-packages"
    assert output("/usr/bin/python3", "-B", "-c", "import stoker; print(stoker.EXIT_REQUEUE)", cwd=folder) == "75\n"


def test_the_program_runs_from_the_package(package, tmp_path):
    output("dpkg-deb", "-x", package, tmp_path)
    assert "fifo" in output(tmp_path / "usr/bin/stoker", "sim", "--list")


def test_the_checksums_are_right(package, tmp_path):
    output("dpkg-deb", "-R", package, tmp_path / "x")
    output("md5sum", "--check", "--quiet", "--strict", "DEBIAN/md5sums", cwd=tmp_path / "x")


def test_the_same_tree_gives_the_same_package(package):
    first = hashlib.sha256(package.read_bytes()).hexdigest()
    output(ROOT / "scripts" / "deb", "--build", package.parent)
    assert hashlib.sha256(package.read_bytes()).hexdigest() == first


def test_lintian_has_no_errors_or_warnings(package):
    if not shutil.which("lintian"):
        pytest.skip("no lintian here")
    done = subprocess.run(["lintian", "--allow-root", package], capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith(("E: ", "W: "))]
    if not (ROOT / "src/cli/commands.c").exists():      # the manual comes from there
        found = [line for line in found if "no-manual-page" not in line]
    assert found == []


@pytest.mark.skipif(not SOAK, reason="takes minutes and a package mirror; STOKER_SOAK=1 runs it")
def test_it_installs_upgrades_and_purges_in_a_fresh_system(package, tmp_path):
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("needs root and debootstrap")
    root = tmp_path / "root"
    output("debootstrap", "--variant=minbase", "--include=python3-minimal,systemd-standalone-tmpfiles", "bookworm", root)
    shutil.copy(package, root / "stoker.deb")
    output("mount", "-t", "proc", "proc", root / "proc")
    try:
        life_of_the_package(root)
    finally:
        output("umount", root / "proc")
        shutil.rmtree(root)


def life_of_the_package(root):
    inside = functools.partial(output, "chroot", root, "env", "DEBIAN_FRONTEND=noninteractive")
    inside("apt-get", "install", "-y", "--no-install-recommends", "/stoker.deb")
    assert "fifo" in inside("stoker", "sim", "--list")
    assert inside("stat", "-c", "%a", "/var/lib/stoker").strip() == "711"
    assert not list(root.glob("etc/systemd/system/*.wants/stoker.service"))
    config = root / "etc/stoker/stoker.yaml"
    config.write_text("# mine\n")
    inside("dpkg", "--force-confold", "-i", "/stoker.deb")
    assert config.read_text() == "# mine\n"
    inside("apt-get", "purge", "-y", "stoker")
    assert not config.exists() and not (root / "var/lib/stoker").exists()
    assert not list(root.glob("usr/lib/python3/dist-packages/**/stoker*"))

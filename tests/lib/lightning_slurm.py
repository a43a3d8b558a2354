# SPDX-License-Identifier: Apache-2.0
"""Lightning's own code for Slurm, as it is installed, without torch.

Run by the interpreter of build/venv. The packages' __init__ files would import torch, so the packages
are set up empty, with their folders as paths, and the few names that the two files need from elsewhere
are stand-ins. What runs is Lightning's SLURMEnvironment and its signal handlers.
"""
import importlib.util
import sys
import types
from unittest import mock


def module(name, **members):
    m = types.ModuleType(name)
    m.__dict__.update(members)
    sys.modules[name] = m
    return m


def package(name):
    root = importlib.util.find_spec(name.split(".")[0]).submodule_search_locations[0] if "." not in name else None
    folder = root or sys.modules[name.rsplit(".", 1)[0]].__path__[0] + "/" + name.rsplit(".", 1)[1]
    return module(name, __path__=[folder])


def load():
    """(SLURMEnvironment, _SignalConnector)"""
    for name in ("torch", "torch.distributed"):
        sys.modules[name] = mock.MagicMock()
    for name in ("lightning_fabric", "lightning_fabric.plugins", "lightning_fabric.plugins.environments",
                 "lightning_fabric.utilities", "pytorch_lightning", "pytorch_lightning.trainer",
                 "pytorch_lightning.trainer.connectors", "pytorch_lightning.utilities"):
        package(name)
    module("lightning_fabric.utilities.imports", _IS_WINDOWS=False)
    module("lightning_fabric.utilities.rank_zero", rank_zero_warn=lambda text, **_: print("warning:", text, flush=True))
    module("lightning_fabric.utilities.warnings", PossibleUserWarning=UserWarning)
    module("pytorch_lightning.utilities.rank_zero", rank_zero_info=lambda text: print("info:", text, flush=True),
           rank_prefixed_message=lambda text, rank: text)
    from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
    sys.modules["lightning_fabric.plugins.environments"].SLURMEnvironment = SLURMEnvironment
    from pytorch_lightning.trainer.connectors.signal_connector import _SignalConnector
    return SLURMEnvironment, _SignalConnector


def handlers(folder):
    """Installs Lightning's handlers for a pretended trainer; its checkpoint is a file in the folder."""
    environment, connector = load()
    trainer = mock.MagicMock()
    trainer._accelerator_connector.cluster_environment = environment()
    trainer.loggers = []
    trainer.is_global_zero = environment().global_rank() == 0
    trainer.strategy.launcher = None
    trainer._checkpoint_connector.hpc_save_path = lambda root: f"{folder}/hpc_ckpt_1.ckpt"
    trainer.save_checkpoint = lambda path: open(path, "w", encoding="utf-8").write("saved")
    connector(trainer).register_signal_handlers()
    return environment()

#!/bin/bash

# Parameters
#SBATCH --array=0-9%4
#SBATCH --cpus-per-task=4
#SBATCH --error=/logs/%A_%a_%t_log.err
#SBATCH --gpus-per-node=1
#SBATCH --job-name=submitit
#SBATCH --mem=4GB
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --open-mode=append
#SBATCH --output=/logs/%A_%a_%t_log.out
#SBATCH --signal=USR2@90
#SBATCH --time=5
#SBATCH --wckey=submitit

# command
export SUBMITIT_EXECUTOR=slurm
srun --unbuffered --output /logs/%A_%a_%t_log.out python -u -m submitit.core._submit /logs

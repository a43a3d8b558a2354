#!/bin/sh
#SBATCH --gres=mps:50
#SBATCH -n 2
#SBATCH --gpus=1g.10gb:1
a

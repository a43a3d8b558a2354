#!/bin/sh
#SBATCH --gres=gpu:a100:0.5
#SBATCH -L matlab:2,ansys
#SBATCH --switches=1@10
#SBATCH --exclusive
a

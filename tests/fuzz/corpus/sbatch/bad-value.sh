#!/bin/sh
#SBATCH --gpus=a:b:c -a 5-1

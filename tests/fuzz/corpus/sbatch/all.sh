#!/bin/sh
#SBATCH -J "a b" -N 2 -n 8 -c2 --gres=gpu:a100:4 --mem-per-gpu=10G -t 1-12:30 -p gpu -A lab -q long
#SBATCH -d afterok:12:13_4,singleton --begin=16:30 --deadline=now+2days -H --nice=5 --requeue
#SBATCH --mail-type=END --constraint='a100|h100' --export=ALL,A=1 -D /x -i in --comment="x # y" # end
true
#SBATCH --gpus=9

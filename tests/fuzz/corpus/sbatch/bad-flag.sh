#!/bin/sh
#SBATCH --exclusive

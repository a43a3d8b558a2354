#!/bin/sh
#SBATCH -J "x

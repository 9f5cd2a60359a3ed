#!/bin/sh
# Prints the tables of docs/measured/experiments.md and draws its pictures into docs; progress on standard error.
# Usage, from the top of the repository, with the data of $PANLEARN_DATA:   docs/measured/experiments.sh [STUDY...]
# Environment: MNIST, OBESITY, INSURANCE, the seeds of each (20).
set -eu
: "${MNIST:=20}" "${OBESITY:=20}" "${INSURANCE:=20}" "${PANLEARN_DATA:?where the data are}"
export PANLEARN_DATA
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
go build -o "$folder/experiments" ./learner/research/experiments
wanted=" $* "

# study NAME OPTIONS...: the tables of one, if it is wanted.
study() {
	case $wanted in "  " | *" $1 "*) "$folder/experiments" "$@" ;; esac
}

case $wanted in "  " | *" mnist"*) "$folder/experiments" mnist50 -o "$folder/mnist50" ;; esac
study mnist -seeds "$MNIST" -o docs/pictures/experiments-mnist "$folder/mnist50"
study mnist-fourier -seeds "$MNIST" -only planned "$folder/mnist50"
study mnist-as-released -seeds "$MNIST" -only "not private" "$folder/mnist50"
study insurance -seeds "$INSURANCE" -o docs/pictures/experiments-insurance
study insurance-paper -seeds "$INSURANCE"
study obesity-paper -seeds "$OBESITY"
study obesity -seeds "$OBESITY" -o docs/pictures/experiments-obesity

#!/bin/sh
# Prints the accuracy table of docs/results.md, a row a task and an epsilon, with what each user's budget buys under other trust; progress
# on standard error.
# Usage, from the top of the repository, with jq and the data of $PANLEARN_DATA:   docs/results.sh [ROW...]
# Environment: LEARNER, the command (go run ./cmd/learner); SEEDS (5); EPSILONS ("1 4").
set -eu
: "${LEARNER:=go run ./cmd/learner}" "${SEEDS:=5}" "${EPSILONS:=1 4}"
D=${PANLEARN_DATA:?where the data are}
wanted=" $* "

# row NAME MEASURE BASELINES TASK OPTIONS...: MEASURE is the field of the JSON and the digits after its point.
row() {
	name=$1 measure=$2 baselines=$3 task=$4
	shift 4
	case $wanted in "  " | *" $name "*) ;; *) return 0 ;; esac
	for epsilon in $EPSILONS; do
		out=$($LEARNER simulate -f "deploy/tasks/$task.yaml" --seeds "$SEEDS" --set validation.off=true --set privacy.epsilon="$epsilon" --baselines "$baselines" "$@" --json)
		printf '%s' "$out" |
			jq -r --arg name "$name" --arg epsilon "$epsilon" --arg field "test_${measure% *}" --argjson digits "${measure#* }" '
			def number: if . == null then "" else . * pow(10; $digits) | round as $n | ($n | fabs | tostring) as $s
				| if $digits == 0 then $s else ("0" * ([$digits + 1 - ($s | length), 0] | max)) + $s | .[:-$digits] + "." + .[-$digits:] end end;
			def base($b): [(.baselines // [])[] | select(.name == $b)][0] | .mean[$field] | number;
			"| \($name) | \($epsilon) | \(.algorithm), \(.rounds) of \(.cohort) | \(.mean[$field] | number) (\(.sd[$field] | number)) | " +
				([base("central"), base("local"), base("exact"), base("converged")] | join(" | ")) + " |"'
	done
}

accuracy="accuracy 4" rmse="error 1" mae="mean_absolute_error 1" pinball="quantile_loss 2"
most=central,local,exact,converged fast=central,local,exact
a9a="--data $D/a9a/a9a.gz --test $D/a9a/a9a.t.gz"
adult="--data $D/adult/adult.data.gz --test $D/adult/adult.test.gz"
m=$D/mnist
mnist="--data $m/train-images-idx3-ubyte.gz,$m/train-labels-idx1-ubyte.gz --test $m/t10k-images-idx3-ubyte.gz,$m/t10k-labels-idx1-ubyte.gz"
spambase="--data $D/spambase/spambase.data.gz --holdout 5 --set schedule.users=3681"
insurance="--data $D/insurance/insurance.csv --holdout 5 --set schedule.users=1071"
bike="--data $D/bike_sharing/hour.csv.gz --holdout 5 --set schedule.users=13904"
plant="--data $D/power_plant/data.txt.gz --holdout 5 --set schedule.users=7655"
agaricus="--data $D/agaricus/agaricus.txt.train.gz --test $D/agaricus/agaricus.txt.test"
absolute="--set model.loss=absolute"

row a9a "$accuracy" $most a9a $a9a
row a9a-psgd "$accuracy" $fast a9a $a9a --set schedule.algorithm=psgd --set model.radius=20
row a9a-scaled "$accuracy" $most a9a-scaled $a9a
row a9a-restarts "$accuracy" $most a9a-restarts $a9a
row adult "$accuracy" $most adult $adult
row adult-crosses "$accuracy" $most adult-crosses $adult
row mnist "$accuracy" $most mnist $mnist
row mnist10 "$accuracy" $fast mnist10 $mnist
row spambase "$accuracy" $most spambase $spambase
row agaricus "$accuracy" $most agaricus $agaricus
row agaricus-envelope "$accuracy" $most agaricus $agaricus --set schedule.algorithm=pagd-envelope --set model.radius=20 --set norm_bound=2
row insurance "$rmse" $most insurance $insurance
row insurance-absolute "$mae" $most insurance $insurance $absolute
row insurance-quantile "$pinball" $most insurance $insurance --set model.loss=quantile --set model.level=0.9
row bike "$rmse" $most bike $bike
row bike-absolute "$mae" $most bike $bike $absolute
row bike-quantile "$pinball" $most bike-quantile $bike
row bike-counts "$rmse" $most bike-counts $bike
row power-plant "error 2" $most power-plant $plant
row a9a-interactive "$accuracy" central,exact,converged a9a-interactive $a9a

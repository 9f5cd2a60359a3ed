#!/bin/sh
# Prints the tables of docs/measured/results.md, a row a task and an epsilon; progress on standard error.
# Usage, from the top of the repository, with jq and the data of $PANLEARN_DATA:   docs/measured/results.sh [ROW...]
# Environment: LEARNER, the command (go run ./cmd/learner); SEEDS (5); EPSILONS ("0.5 1 4").
set -eu
: "${LEARNER:=go run ./cmd/learner}" "${SEEDS:=5}" "${EPSILONS:=0.5 1 4}"
D=${PANLEARN_DATA:?where the data are}
wanted=" $* "

# simulated OPTIONS...: the JSON of simulate.
simulated() {
	$LEARNER simulate --seeds "$SEEDS" --set validation.off=true --json "$@"
}

# tuned OPTIONS...: the settings that tune takes on the training data of the task at hand, as --set options; nothing where it keeps the task. It
# is asked at epsilon 1, for tasks whose test data are a file of their own.
tuned() {
	$LEARNER tune --seeds "$SEEDS" --json "$@" | jq -r '.best.set // {} | to_entries[] | "--set \(.key)=\(.value | tojson)"'
}

# row NAME FIELD DIGITS TASK PROVED OPTIONS...: FIELD is the field of the JSON, and DIGITS those after its point; PROVED are the settings of a
# proved plan, of which radius, clip norm, norm bound and cohort were once chosen on the same public data.
row() {
	name=$1 field=$2 digits=$3 task=$4 proved=$5
	shift 5
	case $wanted in "  " | *" $name "*) ;; *) return 0 ;; esac
	for epsilon in $EPSILONS; do
		set -- "$@" --set privacy.epsilon="$epsilon"
		file=deploy/tasks/$task.yaml
		own=$(if [ "$epsilon" = 1 ]; then simulated -f "$file" "$@" --baselines central,exact,converged; else simulated -f "$file" "$@"; fi)
		old=null best=
		if [ -n "$proved" ]; then
			options=
			for one in $proved; do options="$options --set $one"; done
			# shellcheck disable=SC2086
			old=$(simulated -f "$file" "$@" $options)
		fi
		case "$epsilon $* " in
		"1 "*" --test "*)
			data=
			for one in "$@"; do
				if [ "$data" = next ]; then data=$one; fi
				if [ "$one" = --data ]; then data=next; fi
			done
			best=$(tuned -f "$file" --data "$data" --set validation.off=true --set privacy.epsilon="$epsilon")
			if [ -n "$best" ]; then
				# shellcheck disable=SC2086
				best=$(simulated -f "$file" "$@" $best)
			else
				best='"default"'
			fi
			;;
		*) best=null ;;
		esac
		printf '%s\n%s\n%s' "$own" "$old" "$best" |
			jq -rs --arg name "$name" --arg epsilon "$epsilon" --arg field "test_$field" --argjson digits "$digits" '
			def number($digits): if . == null then "" else . * pow(10; $digits) | round as $n | ($n | fabs | tostring) as $s
				| if $digits == 0 then $s else ("0" * ([$digits + 1 - ($s | length), 0] | max)) + $s | .[:-$digits] + "." + .[-$digits:] end end;
			def mean: if . == null then "" elif . == "default" then . else .mean[$field] | number($digits) end;
			def base($b): [(.baselines // [])[] | select(.name == $b)][0] | .mean[$field] | number($digits);
			.[0] as $own | .[1] as $old | .[2] as $best
			| "| \($name) | \($epsilon) | \($own | mean) (\($own.sd[$field] | number($digits))) | \($best | mean) | \($old | mean) | " +
				([$own | base("central"), base("exact"), base("converged")] | join(" | ")) +
				" | \($own.mean.test_log_loss | number(3)) / \($own.mean.test_calibration_error | number(3)) |"'
	done
}

a9a="--data $D/a9a/a9a.gz --test $D/a9a/a9a.t.gz"
adult="--data $D/adult/adult.data.gz --test $D/adult/adult.test.gz"
m=$D/mnist
mnist="--data $m/train-images-idx3-ubyte.gz,$m/train-labels-idx1-ubyte.gz --test $m/t10k-images-idx3-ubyte.gz,$m/t10k-labels-idx1-ubyte.gz"
spambase="--data $D/spambase/spambase.data.gz --holdout 5 --set schedule.users=3681"
insurance="--data $D/insurance/insurance.csv --holdout 5 --set schedule.users=1071"
bike="--data $D/bike_sharing/hour.csv.gz --holdout 5 --set schedule.users=13904"
plant="--data $D/power_plant/data.txt.gz --holdout 5 --set schedule.users=7655"
agaricus="--data $D/agaricus/agaricus.txt.train.gz --test $D/agaricus/agaricus.txt.test"
pagd=schedule.algorithm=pagd envelope=schedule.algorithm=pagd-envelope psgd=schedule.algorithm=psgd
row20="model.radius=20" row3="model.radius=3 norm_bound=2.3"

# shellcheck disable=SC2086
{
row a9a accuracy 4 a9a "$pagd $row20" $a9a
row a9a-interactive accuracy 4 a9a-interactive "" $a9a
row a9a-pan accuracy 4 a9a "$pagd $row20" $a9a --set privacy.trust=pan
row adult accuracy 4 adult "$pagd $row20" $adult
row adult-crosses accuracy 4 adult-crosses "$pagd model.radius=30 norm_bound=2" $adult
row mnist accuracy 4 mnist "$pagd $row20 norm_bound=2.5 schedule.cohort=800" $mnist
row mnist10 accuracy 4 mnist10 "$pagd model.radius=60 norm_bound=2.5 schedule.cohort=600" $mnist
row spambase accuracy 4 spambase "$pagd model.radius=10 norm_bound=3" $spambase
row agaricus accuracy 4 agaricus "$psgd $row20 norm_bound=2" $agaricus
row insurance error 0 insurance "$pagd model.radius=3 model.clip_norm=0.5" $insurance
row insurance-absolute mean_absolute_error 0 insurance "$envelope model.radius=3 model.clip_norm=0.5" $insurance --set model.loss=absolute
row insurance-quantile quantile_loss 0 insurance "$psgd model.radius=3 model.clip_norm=0.5" $insurance --set model.loss=quantile --set model.level=0.9
row bike error 1 bike "$pagd $row3 model.clip_norm=0.5 schedule.cohort=250" $bike
row bike-absolute mean_absolute_error 1 bike "$envelope $row3 model.clip_norm=0.5" $bike --set model.loss=absolute
row bike-quantile quantile_loss 2 bike-quantile "$envelope $row3" $bike
row bike-counts error 1 bike-counts "$psgd model.radius=10 model.clip_norm=100 norm_bound=2.3" $bike
row power-plant error 2 power-plant "$pagd model.radius=2 model.clip_norm=0.5 norm_bound=3" $plant
}

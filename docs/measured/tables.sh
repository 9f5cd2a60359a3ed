#!/bin/sh
# Prints what the drafts of learner init are worth on tables of $PANLEARN_DATA, a row a table: the draft that begins with
# nothing, the public model alone, the draft that begins with it, and the one that begins with a linear model.
# Usage, from the top of the repository, with jq:   docs/measured/tables.sh [TABLE...]
# Environment: LEARNER, the command (go run ./cmd/learner); SEEDS of noise for each split (2); SPLITS ("1 2 3").
# A split shuffles the rows, sets a fifth aside, takes 2,000 of the others as public sample, or a quarter where they are
# fewer than 8,000, and of the rest a quarter to test on: users are the others.
set -eu
: "${LEARNER:=go run ./cmd/learner}" "${SEEDS:=2}" "${SPLITS:=1 2 3}"
D=${PANLEARN_DATA:?where the data are}
wanted=" $* "
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# rows TABLE: the rows of a table; header TABLE: its first line, if it has one.
rows() {
	case $1 in
	adult) { gzip -dc "$D/adult/adult.data.gz"; gzip -dc "$D/adult/adult.test.gz" | sed '1d;s/\.$//'; } | sed 's/, /,/g' ;;
	elec) gzip -dc "$D/elec/elec.csv.gz" | sed 1d ;;
	spambase) gzip -dc "$D/spambase/spambase.data.gz" ;;
	obesity) sed 1d "$D/obesity/ObesityDataSet_raw_and_data_sinthetic.csv" ;;
	bike) gzip -dc "$D/bike_sharing/hour.csv.gz" | sed 1d ;;
	wine) sed 's/;/,/g' "$D/wine_quality/winequality-white.csv" | grep '^[0-9]' ;;
	power) gzip -dc "$D/power_plant/data.txt.gz" | sed 's/[[:space:]]*$//;s/^[[:space:]]*//;s/[[:space:]][[:space:]]*/,/g' ;;
	insurance) sed 1d "$D/insurance/insurance.csv" ;;
	esac | tr -d '\r' | grep .
}
header() {
	case $1 in
	elec) gzip -dc "$D/elec/elec.csv.gz" | sed -n 1p ;;
	obesity) sed -n 1p "$D/obesity/ObesityDataSet_raw_and_data_sinthetic.csv" ;;
	bike) gzip -dc "$D/bike_sharing/hour.csv.gz" | sed -n 1p ;;
	insurance) sed -n 1p "$D/insurance/insurance.csv" ;;
	esac | tr -d '\r'
}

# split TABLE SEED: writes sample.csv, users.csv and test.csv, and prints how many users there are. The order is that of
# a linear congruential generator, so that it is the same everywhere.
split() {
	rows "$1" | awk -v x="$2" '{ for (i = 0; i < (NR == 1 ? 20 : 1); i++) x = (x * 16807) % 2147483647; printf "%d\t%s\n", x, $0 }' |
		sort -s -n -k1,1 | cut -f2- >"$folder/all"
	header "$1" | tee "$folder/sample.csv" "$folder/users.csv" >"$folder/test.csv"
	awk -v all="$(wc -l <"$folder/all")" -v to="$folder" '
		BEGIN { pool = int(all * 0.8); sample = pool < 8000 ? int(pool / 4) : 2000; test = int((pool - sample) / 4) }
		NR <= sample { print >>(to "/sample.csv"); next }
		NR <= sample + test { print >>(to "/test.csv"); next }
		NR <= pool { print >>(to "/users.csv") }
		END { print pool - sample - test }' "$folder/all"
}

# scores TASK [OPTION...]: what simulate has on the test rows: "loss accuracy" of classes, "error" of numbers.
scores() {
	task=$1
	shift
	$LEARNER simulate -f "$folder/$task.yaml" --data "$folder/users.csv" --test "$folder/test.csv" --seeds "$SEEDS" --json \
		--set validation.off=true --set privacy.delta=1e-6 "$@" 2>>"$folder/errors" | jq -r '.mean | "\(.test_log_loss // .test_error) \(.test_accuracy // "")"'
}

# draft TASK USERS OPTION...
draft() {
	task=$1 users=$2
	shift 2
	# shellcheck disable=SC2086
	$LEARNER init --data "$folder/sample.csv" --users "$users" -o "$folder/$task.yaml" --force $about "$@" 2>>"$folder/errors"
}

# mean DIGITS FILE: means of the columns of numbers.
mean() {
	awk -v digits="$1" '{ for (i = 1; i <= NF; i++) { sum[i] += $i; n = NF } }
		END { for (i = 1; i <= n; i++) printf "%s%.*f", (i > 1 ? " / " : ""), (i > 1 ? 3 : digits), sum[i] / NR }' "$2"
}

echo "| table (users) | begins with nothing | public model alone | begins with it | begins with a linear model |"
echo "| --- | --- | --- | --- | --- |"
for table in adult elec spambase obesity bike wine power insurance; do
	case $wanted in "  " | *" $table "*) ;; *) continue ;; esac
	digits=4 about=
	case $table in
	bike) about="--label cnt" digits=1 ;;
	wine) about="--loss squared" digits=4 ;;
	power) digits=3 ;;
	insurance) digits=0 ;;
	esac
	for seed in $SPLITS; do
		users=$(split "$table" "$seed")
		draft nothing "$users" --no-public-labels
		draft public "$users"
		scores nothing >>"$folder/nothing.$table"
		scores public >>"$folder/public.$table"
		if [ -e "$folder/public-start.json" ]; then
			$LEARNER eval --model "$folder/public-start.json" --data "$folder/test.csv" --json 2>>"$folder/errors" |
				jq -r '"\(.log_loss) \(.accuracy)"' >>"$folder/alone.$table"
			draft linear "$users" --no-public-trees
			scores linear >>"$folder/linear.$table"
		else # a set around the origin in which the task stays where it begins
			scores public --set model.radius=1e-9 >>"$folder/alone.$table"
			echo >"$folder/linear.$table"
		fi
		rm -f "$folder"/*.json
	done
	echo "| $table ($users) | $(mean $digits "$folder/nothing.$table") | $(mean $digits "$folder/alone.$table") |" \
		"$(mean $digits "$folder/public.$table") | $(mean $digits "$folder/linear.$table") |"
done

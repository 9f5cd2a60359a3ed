#!/bin/sh
# Measures what the table of `learner plan --compare` recommends: prints the table of docs/measured/results.md, a row a task, and with LINES set one of every
# line; progress on standard error.
# Usage, from the top of the repository, with jq and the data of $PANLEARN_DATA:   docs/measured/compare.sh [TASK...]
# Environment: LEARNER, the command (go run ./cmd/learner); SEEDS (5); MNIST50, the file of `go run ./learner/research/experiments mnist50 -o FILE`.
set -eu
: "${LEARNER:=go run ./cmd/learner}" "${SEEDS:=5}" "${MNIST50:=}" "${LINES:=}"
D=${PANLEARN_DATA:?where the data are}
wanted=" $* "
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

split= # way to make the silos of PUBLIC, if not parts of it

# row TASK FIELD PUBLIC SET OPTIONS...: SET is an override for all, or nothing. Every line of the table that the task has with its unit is simulated by the real randomizer, and scored on test
# rows. PUBLIC is the file for --data of a second table, whose recommendation is measured too.
row() {
	name=$1 field=$2 public=$3 set=${4:+--set $4}
	shift 4
	case $wanted in "  " | *" $name "*) ;; *) return 0 ;; esac
	file=deploy/tasks/$name.yaml
	# shellcheck disable=SC2086
	$LEARNER plan -f "$file" $set --compare --seeds "$SEEDS" --json >"$folder/alone"
	# shellcheck disable=SC2086
	$LEARNER plan -f "$file" $set --compare --seeds "$SEEDS" --data "$public" ${split:+--split "$split"} --json >"$folder/public"
	jq -r '.lines[] | select(.keeps_unit) | [.set[] | "--set \(@sh)"] | join(" ")' "$folder/alone" >"$folder/sets"
	: >"$folder/measured"
	while read -r sets; do
		case $sets in *silo.count=1*) sets="$sets --split blocks" ;; esac
		eval "set -- $(printf "'%s' " "$@") --nothing $sets"
		options= more=
		for one; do
			case $one in --nothing) more=yes ;; *) [ -n "$more" ] || options="$options '$one'" ;; esac
		done
		eval "$LEARNER simulate -f '$file' --seeds $SEEDS --json $set $options $sets" >>"$folder/measured"
		eval "set -- $options"
	done <"$folder/sets"
	jq -rs --arg name "$name" --arg field "test_$field" --arg lines "$LINES" --slurpfile alone "$folder/alone" --slurpfile public "$folder/public" '
		def number: if . == null then "" elif . < 10 then (. * 10000 | round / 10000) else round end | tostring;
		def name: "\(.trust), \(.passes)";
		($alone[0].falls // $alone[0].smaller_is_better) as $falls
		| .[0].baseline[$field] as $constant
		| [., [$alone[0].lines[] | select(.keeps_unit)], [$public[0].lines[] | select(.keeps_unit)]] | transpose
		| map({name: "\(.[1] | name) \(.[1].algorithm)", value: .[0].mean[$field], sd: .[0].sd[$field],
			points: (if $falls then -100 * .[0].mean[$field] / $constant else 100 * .[0].mean[$field] end),
			predicted: .[1].predicted, public: .[2].predicted, alone: .[1].recommended, data: .[2].recommended})
		| max_by(.points) as $best
		| (if $lines == "" then empty else .[] | "| \($name) | \(.name) | \(.predicted | number) | \(.public | number) | \(.value | number) (\(.sd | number)) | \($best.points - .points | . * 100 | round / 100) |" end),
			([.[] | select(.alone)][0], [.[] | select(.data)][0] | select(. != null) | "| \($name) | \(if .alone and .data then "either" elif .alone then "made up" else "public" end) | \(.name) | \(.value | number) (\(.sd | number)) | \($best.name) | \($best.value | number) | \($best.points - .points | . * 100 | round / 100) |")' "$folder/measured" |
		awk '!seen[$0]++'
}

people() {
	zcat "$D/adult/adult.data.gz" | awk 'NF && NR <= 32560 {printf "p%d, %s\n", (NR - 1) % 2035, $0}' >"$folder/people.csv"
	zcat "$D/adult/adult.test.gz" | awk 'NR > 1 && NF {printf "t%d, %s\n", NR, $0}' >"$folder/people.test.csv"
}

row a9a accuracy "$D/a9a/a9a.gz" "" --data "$D/a9a/a9a.gz" --test "$D/a9a/a9a.t.gz"
row adult accuracy "$D/adult/adult.data.gz" "" --data "$D/adult/adult.data.gz" --test "$D/adult/adult.test.gz"
row insurance error "$D/insurance/insurance.csv" schedule.users=1071 --data "$D/insurance/insurance.csv" --holdout 5
row silos accuracy "$D/a9a/a9a.gz" "" --data "$D/a9a/a9a.gz" --test "$D/a9a/a9a.t.gz"
people
row people accuracy "$folder/people.csv" "" --data "$folder/people.csv" --test "$folder/people.test.csv"
if [ -n "$MNIST50" ]; then
	# some silos have fewer rows to train on than 1238, which a pass over blocks would miss at its end
	split=label-pairs
	row mnist-silos accuracy "$MNIST50" silo.units=1200 --data "$MNIST50" --holdout 5 --split label-pairs
fi

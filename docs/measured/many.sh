#!/bin/sh
# What many tasks in few processes cost: docs/measured/performance.md, "Many tasks". Run it at the top of the repository
# on a machine with nothing else to do.
#
#   docs/measured/many.sh idle [TASKS]    processors and memory of each process while nobody reports (default 200)
#   docs/measured/many.sh busy [TASKS]    users a second of so many tasks at once, and of one with all users (default 20)
set -eu
mode=$1
tasks=${2:-$([ "$mode" = idle ] && echo 200 || echo 20)}
dir=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
go build -o "$dir/bin/" ./cmd/learner ./cmd/ingest github.com/nats-io/nats-server/v2
PATH=$dir/bin:$PATH
nats=nats://127.0.0.1:14222

# declare USERS NAME writes a task.
declare_task() {
	cat >"$dir/tasks/$2.yaml" <<EOF
version: 1
name: $2
events: {format: jsonl}
features:
  columns:
    - {column: x0, kind: numeric, scale: symmetric, min: -4, max: 4}
    - {column: x1, kind: numeric, scale: symmetric, min: -4, max: 4}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 2}
privacy: {epsilon: 4, delta: 1e-6}
schedule: {users: $1, plan: proved}
EOF
}

# start PROGRAM ARGS... starts a process; its number is in $last.
start() {
	"$@" >"$dir/$1.$#.log" 2>&1 &
	last=$!
	pids="$pids $last"
}

# up starts a broker, and the learners and stages of all tasks in $dir/tasks, and waits until they run.
up() {
	rm -rf "$dir/js" "$dir/state" "$dir/marks"
	pids=
	start nats-server -js -sd "$dir/js" -a 127.0.0.1 -p 14222
	broker=$last
	start learner run --tasks "$dir/tasks" --nats "$nats" --report-bytes 33554432 --state "$dir/state" --identity "$dir/learner.key" --http 19090 --stage-http http://127.0.0.1:19091
	learner=$last
	start ingest shuffle --tasks "$dir/tasks" --nats "$nats" --identity "$dir/stage.key" --state "$dir/marks" --http 19091
	stage=$last
	until [ "$(learner status --all --http http://127.0.0.1:19090 --json 2>/dev/null | grep -c '"epsilon_spent"')" = "$1" ]; do sleep 1; done
}

down() {
	kill $pids
	wait 2>/dev/null || true
	pids=
}

# used PID prints the processor time of a process, in hundredths of a second.
used() { awk '{print $14 + $15}' "/proc/$1/stat"; }

mkdir "$dir/tasks"
case $mode in
idle)
	for i in $(seq "$tasks"); do declare_task 2000 "t$i"; done
	up "$tasks"
	start ingest shuffle --tasks "$dir/tasks" --nats "$nats" --identity "$dir/stage.key" --state "$dir/standby"
	standby=$last
	start ingest relay --nats "$nats" --http 18095 --http-no-token
	relay=$last
	sleep 60
	for p in learner stage standby relay broker; do eval "before_$p=\$(used \$$p)"; done
	sleep 120
	for p in learner stage standby relay broker; do
		eval "pid=\$$p before=\$before_$p"
		echo "$p: $(awk "BEGIN {print ($(used "$pid") - $before) / 120}") % of a processor, $(awk '/VmRSS/ {printf "%d", $2 / 1024}' "/proc/$pid/status") MB"
	done
	;;
busy)
	ingest generate --events 40000 --dim 2 --seed 7 -o "$dir/all.jsonl"
	echo 'max_epsilon: 9' >"$dir/policy.yaml"
	for n in 1 "$tasks"; do
		rm -f "$dir"/tasks/* "$dir"/part.*
		users=$((40000 / n))
		split -l $users "$dir/all.jsonl" "$dir/part."
		i=0
		for part in "$dir"/part.*; do
			i=$((i + 1))
			declare_task $((users * 95 / 100)) "t$i"
			mv "$part" "$dir/t$i.jsonl"
		done
		up "$n"
		begin=$(date +%s.%N)
		publishers=
		for i in $(seq "$n"); do
			ingest publish --task "t$i" --nats "$nats" --data "$dir/t$i.jsonl" --policy "$dir/policy.yaml" --state "$dir/devices.$n.$i" --json >"$dir/sum.$n.$i" 2>"$dir/err.$n.$i" &
			publishers="$publishers $!"
		done
		wait $publishers
		end=$(date +%s.%N)
		counted=$(cat "$dir"/sum."$n".* | awk -F'[:,]' '/"counted"/ {n += $2} END {print n}')
		echo "$n tasks: $counted users counted, $(awk "BEGIN {print $counted / ($end - $begin)}") a second"
		down
	done
	;;
esac

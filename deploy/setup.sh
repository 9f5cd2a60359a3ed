#!/bin/sh
# What compose.yaml needs before its processes start: the broker's site, a folder of secrets for each role, and events to send.
# Run again, it changes nothing. It is for trying panlearn: all private halves are made in one place, and moved.
set -eu
: "${SITE:=/broker}" "${SECRETS:=/secrets}" "${EVENTS:=/events}" "${BROKER:=nats}" "${USERS:=20000}" "${OWNER=65532:65532}"

if [ ! -e "$SITE/site/site.conf" ]; then
	learner devca "$SITE/site" --host "$BROKER" --host relay --host scorer --host issuer
fi
for role in admin learner stage helper relay publisher-1; do
	mkdir -p "$SECRETS/$role"
	if [ -e "$SITE/site/$role.nk" ]; then
		cp "$SITE/site/ca.pem" "$SECRETS/$role/ca.pem"
		mv "$SITE/site/$role.pem" "$SECRETS/$role/cert.pem"
		mv "$SITE/site/$role-key.pem" "$SECRETS/$role/key.pem"
		mv "$SITE/site/$role.nk" "$SECRETS/$role/user.nk"
		rm "$SITE/site/$role.env"
	fi
done
for role in relay scorer issuer; do # what is served over HTTP
	mkdir -p "$SECRETS/$role"
	if [ -e "$SITE/site/$role-http.pem" ]; then
		cp "$SITE/site/ca.pem" "$SECRETS/$role/ca.pem"
		mv "$SITE/site/$role-http.pem" "$SECRETS/$role/http.pem"
		mv "$SITE/site/$role-http-key.pem" "$SECRETS/$role/http-key.pem"
		(umask 077 && head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$SECRETS/$role/token")
	fi
done
learner keygen "$SECRETS/learner/learner.key"
if [ -n "${LEADER:-}" ]; then
	ingest keygen leader --state "$LEADER"
else
	ingest keygen "$SECRETS/stage/stage.key"
fi
# An operator's folder is its identity. compose.split.yaml wants the three public keys.
if [ -n "${HELPER:-}" ]; then
	ingest keygen helper --state "$HELPER/folder"
fi
if [ ! -e "$EVENTS/events.jsonl" ]; then
	ingest generate --events "$USERS" --dim 8 -o "$EVENTS/events.jsonl"
fi
if [ -n "$OWNER" ]; then
	chown -R "$OWNER" "$SITE" "$SECRETS" "$EVENTS" "$@"
fi

#!/usr/bin/env bash
# Says a code to somebody on the telephone, and waits until the call is over: verify.sh NUMBER CODE
# Needs curl and openssl, and ACCOUNT_SID, AUTH_TOKEN, APP_ID, BASE_URL and, for a private CA, CA_FILE in the environment.
set -euo pipefail
number=$1 code=$2

# ask METHOD OPERATION [BODY]: one signed request in JSON
ask() {
  local stamp sig mark='?'
  stamp=$(date +%Y%m%d%H%M%S)
  sig=$(printf %s "$ACCOUNT_SID$AUTH_TOKEN$stamp" | openssl md5 -r | cut -c1-32)
  if [[ $2 == *\?* ]]; then mark='&'; fi
  curl --silent --show-error --fail ${CA_FILE:+--cacert "$CA_FILE"} --request "$1" "$BASE_URL/2013-12-26/Accounts/$ACCOUNT_SID/$2${mark}sig=$sig" \
    --header "Authorization: $(printf %s "$ACCOUNT_SID:$stamp" | openssl base64 -A)" \
    --header 'Accept: application/json' --header 'Content-Type: application/json;charset=utf-8' ${3+--data-binary "$3"}
}

# value NAME: the value of a field in an answer
value() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

# The requestId makes it safe to send the same request again after a timeout: nobody is called twice.
answer=$(ask POST Calls/VoiceVerify '{"appId":"'"$APP_ID"'","to":"'"$number"'","verifyCode":"'"$code"'","lang":"en","playTimes":"2","requestId":"'"$(openssl rand -hex 16)"'"}')
[ "$(value statusCode <<<"$answer")" = 000000 ] || { echo "refused: $answer" >&2; exit 1; }
call=$(value callSid <<<"$answer")
echo "callSid $call"

# 3 queued, 4 dialling or ringing, 5 talking
while result=$(ask GET "CallResult?callsid=$call") && state=$(value state <<<"$result") && [ "$state" -ge 3 ]; do sleep 0.5; done
echo "state $state callTime $(value callTime <<<"$result")"

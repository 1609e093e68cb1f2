#!/usr/bin/env bash
# Requests a call, waits until it has ended, and downloads yesterday's bill. Needs bash and curl.
#
#     BASE_URL=https://localhost:8883 CA_FILE=ca.pem ACCOUNT_SID=… AUTH_TOKEN=… APP_ID=… bash call.sh 13800000001
set -euo pipefail

# With CA_FILE, trusts only this CA. Without it, trusts the CAs of the machine.
trust=(${CA_FILE:+--cacert "$CA_FILE"})

# ask METHOD OPERATION [BODY]: one signed request; the answer is left in $answer.
ask() {
  local stamp sig query='?'
  stamp=$(date +%Y%m%d%H%M%S)
  sig=$(printf %s "$ACCOUNT_SID$AUTH_TOKEN$stamp" | md5sum | cut -c1-32)
  if [[ $2 == *\?* ]]; then query='&'; fi
  answer=$(curl --silent --show-error --fail --max-time 30 "${trust[@]}" --request "$1" \
    --header 'Accept: application/xml' --header 'Content-Type: application/xml;charset=utf-8' \
    --header "Authorization: $(printf %s "$ACCOUNT_SID:$stamp" | base64 --wrap=0)" \
    ${3+--data-binary "$3"} "$BASE_URL/2013-12-26/Accounts/$ACCOUNT_SID/$2${query}sig=$sig")
  if [[ $(element statusCode) != 000000 ]]; then
    echo "$2: $(element statusCode) $(element statusMsg)" >&2
    exit 1
  fi
}

# element NAME: the text of this element of the answer.
element() { sed -n "s:.*<$1>\(.*\)</$1>.*:\1:p" <<<"$answer"; }

ask POST Calls/LandingCalls "<LandingCall><appId>$APP_ID</appId><to>$1</to><mediaTxt>您的订单已发货</mediaTxt></LandingCall>"
call_sid=$(element callSid)
echo "callSid $call_sid"

# 0 talked, 1 not answered, 2 failed; any other state means that the call has not ended.
while ask GET "CallResult?callsid=$call_sid"; [[ $(element state) -gt 2 ]]; do sleep 0.5; done
echo "state $(element state) duration $(element duration)"

ask POST BillRecords "<BillRecords><appId>$APP_ID</appId><date>day</date></BillRecords>"
curl --silent --show-error --fail "${trust[@]}" --output bill.csv "$(element downUrl)?token=$(element token)"
echo "bill bill.csv"

#!/usr/bin/env python3
"""Requests a call, waits until it has ended, and downloads yesterday's bill. Needs Python 3.8 or newer.

    BASE_URL=https://localhost:8883 CA_FILE=ca.pem ACCOUNT_SID=… AUTH_TOKEN=… APP_ID=… python3 call.py 13800000001
"""
import base64
import datetime
import hashlib
import json
import os
import ssl
import sys
import time
import urllib.parse
import urllib.request

BASE_URL = os.environ["BASE_URL"]
ACCOUNT_SID = os.environ["ACCOUNT_SID"]
AUTH_TOKEN = os.environ["AUTH_TOKEN"]
APP_ID = os.environ["APP_ID"]
# With CA_FILE, trusts only this CA. Without it, trusts the CAs of the machine.
TLS = ssl.create_default_context(cafile=os.environ.get("CA_FILE"))


def ask(operation, fields=None, **query):
    """One signed request: a POST with fields, otherwise a GET. Returns the answer, or ends the program with its message."""
    stamp = datetime.datetime.now().strftime("%Y%m%d%H%M%S")
    query["sig"] = hashlib.md5((ACCOUNT_SID + AUTH_TOKEN + stamp).encode()).hexdigest().upper()
    request = urllib.request.Request(
        f"{BASE_URL}/2013-12-26/Accounts/{ACCOUNT_SID}/{operation}?{urllib.parse.urlencode(query)}",
        data=None if fields is None else json.dumps({"appId": APP_ID, **fields}).encode(),
        headers={
            "Accept": "application/json",
            "Content-Type": "application/json;charset=utf-8",
            "Authorization": base64.b64encode(f"{ACCOUNT_SID}:{stamp}".encode()).decode(),
        },
    )
    with urllib.request.urlopen(request, context=TLS, timeout=30) as response:
        answer = json.load(response)
    if answer["statusCode"] != "000000":
        sys.exit(f"{operation}: {answer['statusCode']} {answer['statusMsg']}")
    return answer


placed = ask("Calls/LandingCalls", {"to": sys.argv[1], "mediaTxt": "您的订单已发货"})
call_sid = placed["LandingCall"]["callSid"]
print("callSid", call_sid)

# 0 talked, 1 not answered, 2 failed; any other state means that the call has not ended.
while (result := ask("CallResult", callsid=call_sid)["CallResult"])["state"] not in "012":
    time.sleep(0.5)
print("state", result["state"], "duration", result["duration"])

bill = ask("BillRecords", {"date": "day"})
with urllib.request.urlopen(f"{bill['downurl']}?token={bill['token']}", context=TLS, timeout=30) as response:
    lines = response.read()
with open("bill.csv", "wb") as file:
    file.write(lines)
print("bill bill.csv")

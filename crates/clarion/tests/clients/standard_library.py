"""A client in Python with nothing but the standard library, which verifies the certificate.

Usage: standard_library.py HOST:PORT CA_FILE ACCOUNT_SID AUTH_TOKEN APP_ID; prints one answer a line.
"""
import base64
import datetime
import hashlib
import http.client
import json
import ssl
import sys
import xml.etree.ElementTree as ElementTree

address, ca_file, account_sid, auth_token, app_id = sys.argv[1:]
connection = http.client.HTTPSConnection(
    *address.split(":"), context=ssl.create_default_context(cafile=ca_file), timeout=20
)


def ask(method, operation, media_type, body=None):
    stamp = datetime.datetime.now().strftime("%Y%m%d%H%M%S")
    sig = hashlib.md5((account_sid + auth_token + stamp).encode()).hexdigest().upper()
    headers = {
        "Accept": media_type,
        "Content-Type": media_type + ";charset=utf-8",
        "Authorization": base64.b64encode(f"{account_sid}:{stamp}".encode()).decode(),
    }
    separator = "&" if "?" in operation else "?"
    path = f"/2013-12-26/Accounts/{account_sid}/{operation}{separator}sig={sig}"
    connection.request(method, path, body=body and body.encode(), headers=headers)
    response = connection.getresponse()
    assert response.status == 200, response.status
    return response.read().decode()


def by_xml(operation, root, **fields):
    element = ElementTree.Element(root)
    for name, value in {"appId": app_id, **fields}.items():
        ElementTree.SubElement(element, name).text = value
    answer = ElementTree.fromstring(ask("POST", operation, "application/xml", ElementTree.tostring(element, "unicode")))
    return {child.tag: child.text or {inner.tag: inner.text for inner in child} for child in answer}


def by_json(operation, **fields):
    return json.loads(ask("POST", operation, "application/json", json.dumps({"appId": app_id, **fields})))


placed = by_xml("Calls/LandingCalls/", "LandingCall", to="13800000000", mediaTxt="您好 <&>", playTimes="2")
print(json.dumps(placed))
print(json.dumps(by_json("Calls/LandingCalls/", to="01052823298-3627", mediaName="ccp_marketingcall.wav")))
print(json.dumps(by_json("Calls/LandingCalls/", to="13800000000", mediaTxt="x", playTimes="4")))
print(json.dumps(by_xml("BillRecords", "BillRecords", date="day", keywords="")))
print(ask("GET", f"CallResult?callsid={placed['LandingCall']['callSid']}", "application/json"))
print(ask("GET", "AccountInfo", "application/json"))

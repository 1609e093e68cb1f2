# -*- coding: utf-8 -*-
# The PyPI package yuntongxun, unmodified, as an application would use it. It is written for Python 2, so this runs on Jython.
# Usage: jython pypi_yuntongxun.py PORT ACCOUNT_SID AUTH_TOKEN APP_ID; prints one line of JSON per answer.
import json
import sys

from yuntongxun.CCPRestSDK import REST

port, account_sid, auth_token, app_id = sys.argv[1:]


def client(body_type):
    rest = REST('localhost', port, '2013-12-26')
    rest.setAccount(account_sid, auth_token)
    rest.setAppId(app_id)
    rest.BodyType = body_type
    rest.Iflog = False
    return rest


# One by one: the package's XML reader puts every answer into the same dictionary.
xml, json_client = client('xml'), client('json')
# to, mediaName, mediaTxt, displayNum, playTimes, respUrl
print(json.dumps(xml.landingCall('13800000001', 'ccp_marketingcall.wav', '', '', '1', 'http://receiver.example/cb?a=1&b=2')))
print(json.dumps(xml.billRecords('day', '')))
print(json.dumps(json_client.landingCall('13800000002', '', '您好', '', '', '')))
print(json.dumps(json_client.landingCall('13800000002', '', '', '', '1', '')))
print(json.dumps(json_client.billRecords('day', '')))
# verifyCode, playTimes, to, displayNum, respUrl
print(json.dumps(xml.voiceVerify('7q42', '2', '13800000003', '', '')))
print(json.dumps(json_client.voiceVerify('830516', '1', '13800000004', '', 'http://receiver.example/cb')))
print(json.dumps(json_client.voiceVerify('123', '1', '13800000004', '', '')))
print(json.dumps(xml.queryAccountInfo()))

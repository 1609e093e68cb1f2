// Requests a call, waits until it has ended, and downloads yesterday's bill. Needs Node.js 18 or newer.
//
//     BASE_URL=https://localhost:8883 CA_FILE=ca.pem ACCOUNT_SID=… AUTH_TOKEN=… APP_ID=… node call.mjs 13800000001
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

const { BASE_URL, CA_FILE, ACCOUNT_SID, AUTH_TOKEN, APP_ID } = process.env;
// With CA_FILE, trusts only this CA. Without it, trusts the CAs of Node.js.
const agent = new https.Agent({ ca: CA_FILE && readFileSync(CA_FILE), keepAlive: true });

function fetchText(url, options = {}, body = undefined) {
  return new Promise((resolve, reject) => {
    const request = https.request(url, { agent, timeout: 30_000, ...options }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        response.statusCode === 200 ? resolve(text) : reject(new Error(`HTTP ${response.statusCode}: ${text}`));
      });
    });
    request.on('timeout', () => request.destroy(new Error('no answer in time')));
    request.on('error', reject);
    request.end(body);
  });
}

/** yyyyMMddHHmmss of this machine's clock. */
function stamp(now = new Date()) {
  const parts = [now.getMonth() + 1, now.getDate(), now.getHours(), now.getMinutes(), now.getSeconds()];
  return now.getFullYear() + parts.map((part) => String(part).padStart(2, '0')).join('');
}

/** One signed request: a POST where there are fields, otherwise a GET. */
async function ask(operation, fields = undefined, query = {}) {
  const at = stamp();
  const sig = createHash('md5').update(ACCOUNT_SID + AUTH_TOKEN + at).digest('hex').toUpperCase();
  const url = `${BASE_URL}/2013-12-26/Accounts/${ACCOUNT_SID}/${operation}?${new URLSearchParams({ ...query, sig })}`;
  const headers = {
    Accept: 'application/json',
    'Content-Type': 'application/json;charset=utf-8',
    Authorization: Buffer.from(`${ACCOUNT_SID}:${at}`).toString('base64'),
  };
  const body = fields && JSON.stringify({ appId: APP_ID, ...fields });
  const answer = JSON.parse(await fetchText(url, { method: body ? 'POST' : 'GET', headers }, body));
  if (answer.statusCode !== '000000') {
    console.error(`${operation}: ${answer.statusCode} ${answer.statusMsg}`);
    process.exit(1);
  }
  return answer;
}

const placed = await ask('Calls/LandingCalls', { to: process.argv[2], mediaTxt: '您的订单已发货' });
const { callSid } = placed.LandingCall;
console.log('callSid', callSid);

// 0 talked, 1 not answered, 2 failed; any other state means that the call has not ended.
let result;
do {
  await sleep(500);
  result = (await ask('CallResult', undefined, { callsid: callSid })).CallResult;
} while (Number(result.state) > 2);
console.log('state', result.state, 'duration', result.duration);

const bill = await ask('BillRecords', { date: 'day' });
writeFileSync('bill.csv', await fetchText(`${bill.downurl}?token=${bill.token}`));
console.log('bill bill.csv');
agent.destroy();

// The npm package `yuntongxun`, unmodified, as an application would use it.
// Usage: node yuntongxun.js BASE_URL ACCOUNT_SID AUTH_TOKEN APP_ID; prints one line of JSON per answer.
const [baseUrl, accountSid, authToken, appId] = process.argv.slice(2);
const api = require('yuntongxun').init({ accountSid, authToken, appId, baseUrl, softVersion: '2013-12-26', log: () => {} });

const ask = (operation, fields) =>
  new Promise((resolve, reject) => {
    const done = (error, response, body) => (error ? reject(error) : resolve({ operation, status: response.statusCode, body }));
    fields ? api[operation](fields, done) : api[operation](done);
  });

(async () => {
  const answers = [
    await ask('landingCalls', { to: '13800000000', mediaTxt: '您好，订单已发货', playTimes: 2 }),
    await ask('landingCalls', { to: '01052823298-3627', mediaName: 'ccp_marketingcall.wav', userData: 'a"b<c>&' }),
    await ask('landingCalls', { to: '13800000000' }),
    await ask('billRecords', { date: 'day' }),
    await ask('accountInfo'),
    await ask('templateSMS', { to: '13800000000', templateId: '1' }),
    await ask('voiceVerify', { to: '13800000003', verifyCode: '7q42', playTimes: 2 }),
    await ask('voiceVerify', { to: '13800000003', verifyCode: 123 }),
  ];
  answers.forEach((answer) => console.log(JSON.stringify(answer)));
})().catch((error) => {
  console.error(error);
  process.exit(1);
});

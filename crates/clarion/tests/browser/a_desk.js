// A day at the desk: places a call, watches it end without loading the page, compares what was said, uploads a file, downloads a bill, lets a trunk run empty.
// Then the same without script: what is live is loaded again, and a callback is sent again from the list.
const fs = require("node:fs");
const { ask, check, open, signIn, isClean, run } = require("./operator.js");

async function saved(page, click) {
  const [download] = await Promise.all([page.waitForEvent("download"), click()]);
  return fs.readFileSync(await download.path());
}

// Nobody loads the page.
async function ends(page) {
  await page.evaluate(() => { document.body.dataset.mine = "yes"; });
  await page.waitForSelector("h1 .mark:text('talked')");
  check(await page.evaluate(() => document.body.dataset.mine) === "yes", "the call was loaded again");
  const wave = await page.evaluate(() => {
    const image = document.querySelector(".heard img");
    return image.complete && image.naturalWidth > 0;
  });
  check(wave, "the waveform is seen");
}

async function tries(page) {
  await page.click("nav a[href='/try']");
  await page.fill("[name=to]", "13800000010");
  await page.fill("[name=mediaTxt]", "Your order 4711 has left. 您的订单已发出。");
  await page.click("#show");
  await page.waitForSelector("#as-xml");
  check((await page.innerText("#as-xml")).includes("<to>13800000010</to>"), "the request is shown");
  await page.click("#place");
  await page.waitForURL("**/calls/*done=requested");
  const sid = new URL(page.url()).pathname.split("/").pop();
  if (page.hasScript) await ends(page);
  else {
    await ask({ over: sid });
    await page.reload();
    check((await page.innerText("h1 .mark")).includes("talked"), "the call has ended");
  }
  const said = await saved(page, () => page.click("#save-sound"));
  const compared = JSON.parse(await ask({ heard: sid, bytes: said.toString("base64") }));
  check(compared === true, "what is downloaded is what the callee heard");
}

async function uploads(page) {
  await page.click("nav a[href='/audio']");
  const wav = Buffer.from(await ask({ wav: true }), "base64");
  await page.setInputFiles("[name=file]", { name: "hello.wav", mimeType: "audio/wav", buffer: wav });
  await page.click("#upload");
  await page.waitForURL("**/audio?*done=added");
  check((await page.innerText("table")).includes("hello.wav"), "the file is there");
}

async function bills(page) {
  // A day passes, and with it the sign-in.
  const day = await ask({ close: true });
  await signIn(page);
  await page.click("nav a[href='/bills']");
  await page.click(`a[href='/bills/${day}']`);
  await page.click("#verify");
  await page.waitForSelector(".done:text('All is right')");
  const file = await saved(page, () => page.click("a[download]"));
  check(file.toString("utf8").split("\n").length > 1, "the bill has lines");
}

async function sendsAgain(page) {
  await ask({ call: "13800000010", ended: true });
  const button = page.locator("form[action='/callbacks/resend'] button").first();
  for (let turn = 0; turn < 500 && await button.count() === 0; turn += 1) await page.goto("/callbacks?state=delivered");
  await button.click();
  await page.waitForURL("**/callbacks?done=resent");
  check((await page.innerText(".done")).length > 0, "what was done is said");
}

async function day(browser, script) {
  const page = await open(browser, { script });
  await signIn(page);
  await tries(page);
  await uploads(page);
  await page.click("nav a[href='/trunks']");
  await page.click("form[action$='/drain'] button");
  await page.waitForURL("**/trunks?done=drained");
  await page.click("form[action$='/open'] button");
  await page.waitForURL("**/trunks?done=opened");
  if (script) {
    await page.click("nav a[href='/health']");
    check((await page.innerText("table")).includes("configuration"), "the check has findings");
  } else await sendsAgain(page);
  await bills(page);
  isClean(page);
  await page.context().close();
}

run(async (browser) => {
  await day(browser, true);
  await day(browser, false);
});

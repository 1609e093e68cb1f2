// A shift of an operator: signs in, watches a call to its end without loading the page again, hangs one up, sends a callback again, signs out.
const { ask, check, open, signIn, isClean, run, until } = require("./operator.js");

run(async (browser) => {
  const page = await open(browser);
  await page.goto("/calls");
  check(new URL(page.url()).pathname === "/sign-in", "a stranger signs in first");
  await page.fill("[name=name]", "admin");
  await page.fill("[name=password]", "not the password");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[role=alert]");
  await page.fill("[name=password]", process.env.CONSOLE_PASSWORD);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/calls");

  // What happens appears by itself: the mark is lost if the page is loaded again.
  await page.click("nav a[href='/']");
  await page.evaluate(() => { document.body.dataset.mine = "yes"; });
  const sid = await ask({ call: "13800000001" });
  await page.waitForSelector(`a[href='/calls/${sid}']`);
  check(await page.evaluate(() => document.body.dataset.mine) === "yes", "the overview was loaded again");

  // Whoever goes by the keyboard stays where they are, though the part is another one a second later.
  const ringing = await ask({ call: "13800000003" });
  const link = page.locator(`a[href='/calls/${ringing}']`);
  await link.focus();
  await link.evaluate((one) => {
    one.mine = true;
    getSelection().selectAllChildren(one);
  });
  const another = await ask({ call: "13800000001" });
  await page.waitForSelector(`a[href='/calls/${another}']`);
  check(await link.evaluate((one) => one === document.activeElement), "the focus is lost");
  check(await link.evaluate((one) => one.mine), "what did not change was made anew");
  check(await page.evaluate(() => getSelection().toString()) === ringing, "the selection is lost");

  await page.goto(`/calls/${ringing}`);
  await page.evaluate(() => { document.body.dataset.mine = "yes"; });
  await page.waitForSelector("h1 .mark:text('ringing')");
  await page.click("#stop");
  await page.waitForURL("**/*done=cancelled");
  await page.evaluate(() => { document.body.dataset.mine = "yes"; });
  await page.waitForSelector("h1 .mark:text('cancelled')");
  await page.waitForSelector(".story strong:text('callback delivered')").catch(async (error) => {
    throw new Error(`${await page.innerText("main")}\n${error}`);
  });
  check(await page.evaluate(() => document.body.dataset.mine) === "yes", "the call was loaded again");

  // A message of the ladder opens, by the keyboard, and stays open.
  const message = page.locator("details[id^=message]").first();
  await message.locator("summary").focus();
  await page.keyboard.press("Enter");
  check((await message.locator("pre").innerText()).startsWith("INVITE sip:"), "the first message is an INVITE");

  const before = Number(await ask({ callbacks: ringing }));
  await page.click("#resend");
  await page.waitForURL("**/*done=resent");
  const after = Number(await ask({ callbacks: ringing, more: before }));
  check(after > before, "the callback is sent again");

  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.goto("/calls").then(() => page.click("a[download]")),
  ]);
  const text = require("node:fs").readFileSync(await download.path(), "utf8");
  check(text.includes(ringing) && text.includes(sid), "the file has both calls");

  // A line on which nothing comes any more is noticed, and another one opened.
  const silent = await page.context().newPage();
  const lines = [];
  await silent.route("**/events/now", (route) => { lines.push(route); });
  await silent.clock.install();
  await silent.goto("/");
  await until(() => lines.length === 1, "the page listens");
  await silent.clock.fastForward(19000);
  check(await silent.isHidden(".stale"), "a line may be silent for a while");
  await silent.clock.fastForward(2000);
  await silent.waitForSelector(".stale", { state: "visible" });
  await until(() => lines.length === 2, "the page listens anew");
  await lines[1].continue();
  await silent.waitForSelector(".stale", { state: "hidden" });
  await silent.close();

  await page.goto("/audit");
  check((await page.innerText("table")).includes(`call cancel ${ringing}`), "the change is noted");
  // A page that is still open says so.
  const other = await page.context().newPage();
  await other.goto("/");
  await page.click("form[action='/sign-out'] button");
  await page.waitForURL("**/sign-in");
  await other.waitForSelector(".signed-out a[href='/sign-in']");
  check(await other.isHidden(".stale"), "and does not hope for news");
  await page.goto("/");
  check(new URL(page.url()).pathname === "/sign-in", "signed out");
  isClean(page);
});

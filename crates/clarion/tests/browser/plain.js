// Without script everything works but what is live; with the keyboard alone everything can be reached; who guesses passwords is locked out.
const { ask, check, open, signIn, isClean, run, password } = require("./operator.js");

async function withoutScript(browser) {
  const page = await open(browser, { script: false });
  await signIn(page);
  const sid = await ask({ call: "13800000003" });
  for (const place of ["/", "/calls", "/audit"]) {
    await page.goto(place);
    check((await page.innerText("h1")).length > 0, place);
  }
  await page.goto("/calls?which=alive");
  await page.click(`a[href='/calls/${sid}']`);
  await page.click("#stop");
  await page.waitForURL("**/*done=cancelled");
  check((await page.innerText("[role=status]:not([hidden])")).includes("being ended"), "what was done is said");
  await page.goto("/calls");
  await page.fill("[name=sid]", sid);
  await page.click("button.main");
  await page.waitForURL(`**/calls/${sid}`);
  await page.click("details summary");
  await page.click("form[action='/sign-out'] button");
  await page.waitForURL("**/sign-in");
  isClean(page);
}

async function byKeyboard(browser) {
  const page = await open(browser);
  await signIn(page, "viewer");
  await page.keyboard.press("Tab");
  const first = () => page.evaluate(() => document.activeElement.className);
  check(await first() === "skip", "the first stop leads to the content");
  const box = await page.locator(".skip").boundingBox();
  check(box.x >= 0, "and is seen then");
  await page.keyboard.press("Enter");
  check(await page.evaluate(() => document.activeElement.id) === "content", "it leads there");
  await page.goto("/calls");
  const reached = new Set();
  for (let stop = 0; stop < 40; stop += 1) {
    await page.keyboard.press("Tab");
    const seen = await page.evaluate(() => {
      const one = document.activeElement;
      // After the last stop the browser itself has the focus.
      if (one === document.body) return null;
      return { name: one.name || one.getAttribute("href") || one.textContent.trim(), outline: getComputedStyle(one).outlineStyle };
    });
    if (!seen) continue;
    reached.add(seen.name);
    check(seen.outline !== "none", `the focus is seen at ${seen.name}`);
  }
  for (const wanted of ["/", "/audit", "account", "which", "sid", "Show", "Sign out"]) {
    check(reached.has(wanted), `${wanted} is reached by the keyboard: ${[...reached]}`);
  }
  // A viewer is not offered what a viewer may not do.
  const sid = await ask({ call: "13800000003" });
  await page.goto(`/calls/${sid}`);
  check(await page.locator("#stop").count() === 0, "no button for a viewer");
  isClean(page);
}

async function lockedOut(browser) {
  const page = await open(browser, { language: "zh" });
  await page.goto("/sign-in");
  for (let turn = 0; turn < 5; turn += 1) {
    await page.fill("[name=name]", "guessed");
    await page.fill("[name=password]", `wrong password ${turn}`);
    await page.click("button.main");
    await page.waitForSelector("[role=alert]:text('用户名或密码不正确')");
    await page.goto("/sign-in");
  }
  await page.fill("[name=name]", "guessed");
  await page.fill("[name=password]", password);
  await page.click("button.main");
  await page.waitForSelector("[role=alert]:text('密码输错次数过多')");
  isClean(page);
}

run(async (browser) => {
  await withoutScript(browser);
  await byKeyboard(browser);
  await lockedOut(browser);
});

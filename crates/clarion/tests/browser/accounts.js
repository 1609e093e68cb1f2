// An admin adds an account, gives it an application, a limit and a list, and a new token. Wrong values come back as they were typed. All of it in each language, and without script.
const { check, open, signIn, isClean, isAccessible, run } = require("./operator.js");

const texts = {
  en: { wrong: "Calls at once must be a whole number", saved: "Saved.", list: "The list is added." },
  zh: { wrong: "“并发呼叫数”应为", saved: "已保存", list: "号码列表已添加" },
};

async function isDone(page, text) {
  await page.waitForSelector(`.done:text("${text}")`);
}

async function secrets(page) {
  await page.waitForSelector(".secrets");
  return page.locator(".secrets code").allInnerTexts();
}

async function addAccount(page, language) {
  await page.click("nav a[href='/accounts']");
  await page.fill("#add-name", `Clinic ${language} 诊所`);
  await page.click("form[action='/accounts'][method=post] button.main");
  const [sid, token] = await secrets(page);
  check(/^[0-9a-zA-Z]{32}$/.test(sid) && /^[0-9a-zA-Z]{32}$/.test(token), "sid and token are shown");
  await isAccessible(page, `the secret in ${language}`);
  await page.click("main a.button");
  await page.waitForURL(`**/accounts/${sid}`);
  check(!(await page.content()).includes(token), "the token is shown once");
  await page.fill("#app-name", "Reminders");
  await page.check("[name=sign-callbacks]");
  await page.click("#add-app button");
  const [app, secret] = await secrets(page);
  check(secret.startsWith("whsec_"), "the secret is shown");
  await page.click("main a.button");
  await page.waitForURL(`**/apps/${app}`);
  await page.goto(`/accounts/${sid}`);
  return { sid, token };
}

async function setLimit(page, language) {
  await page.fill("#settings-calls-at-once", "many");
  await page.fill("#settings-call-hours", "1-5 0800-2100");
  await page.click("section[aria-labelledby=settings] button.main");
  await page.waitForSelector(`[role=alert]:has-text("${texts[language].wrong}")`);
  check(await page.inputValue("[aria-invalid=true]") === "many", "what was typed is kept");
  check(await page.inputValue("#settings-call-hours") === "1-5 0800-2100", "all of it");
  await isAccessible(page, `a refused form in ${language}`);
  await page.fill("#settings-calls-at-once", "7");
  await page.click("section[aria-labelledby=settings] button.main");
  await isDone(page, texts[language].saved);
  check(await page.inputValue("#settings-calls-at-once") === "7", "the limit is set");
}

async function rotate(page, token) {
  await page.click("#rotate summary");
  await page.click("#rotate button");
  const [, fresh] = await secrets(page);
  check(fresh !== token, "the token is a new one");
  check(!page.url().includes(fresh), "and in no address");
  await page.click("main a.button");
}

async function editList(page, sid, language) {
  await page.goto(`/accounts/${sid}/lists`);
  await page.fill("#add-name", "night");
  await page.fill("#add-numbers", "13800000000=李伟\n13800000001");
  await page.click("section[aria-labelledby=add] button.main");
  await isDone(page, texts[language].list);
  await page.click("#edit-list-night summary");
  await page.fill("#list-night-numbers", "13800000002");
  await page.click("#edit-list-night button");
  await page.waitForURL("**/*done=list-set");
  const rows = await page.locator("tbody tr").allInnerTexts();
  check(rows.length === 1 && rows[0].includes("13800000002"), "the list is changed");
  await page.goto(`/accounts/${sid}/do-not-call`);
  await page.fill("#add-number", "13900000000");
  await page.click("section[aria-labelledby=add] button.main");
  await page.waitForSelector("td:has-text('+8613900000000')");
  await page.click("td.act button");
  await page.waitForURL("**/*done=number-removed");
}

run(async (browser) => {
  const refused = /\/accounts\/\w{32}$/;
  for (const options of [{ language: "en" }, { language: "zh" }, { language: "en", script: false }]) {
    const page = await open(browser, { ...options, refused });
    await signIn(page);
    const { sid, token } = await addAccount(page, options.language);
    await setLimit(page, options.language);
    await rotate(page, token);
    await editList(page, sid, options.language);
    isClean(page);
    await page.context().close();
  }
});

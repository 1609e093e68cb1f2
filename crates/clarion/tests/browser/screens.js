// Every screen in each language: it is in that language, is accessible, fits into a telephone, and asks nobody else for anything.
// With PICTURES, a folder, it also takes a picture of each in both colours and three widths.
const path = require("node:path");
const { ask, check, open, signIn, isClean, isAccessible, run, address } = require("./operator.js");

const pictures = process.env.PICTURES;
const widths = [360, 768, 1280];
// The account and the application that every test has.
const account = "0123456789abcdef0123456789abcdef";
const app = "aaaabbbbccccddddeeeeffff00001111";
// Pages whose heading is a number, or what a customer is called.
const named = ["call-talked", "call-busy", "account", "app", "intake"];
const hanzi = /[\u4e00-\u9fff]/;

async function screens() {
  const talked = await ask({ call: "13800000010", ended: true });
  const busy = await ask({ call: "13800000002", ended: true });
  return [
    ["sign-in", "/sign-in"],
    ["now", "/"],
    ["calls", "/calls"],
    ["calls-none", `/calls?account=${"f".repeat(32)}`],
    ["call-talked", `/calls/${talked}`],
    ["call-busy", `/calls/${busy}`],
    ["accounts", "/accounts"],
    ["accounts-none", "/accounts?find=nobody"],
    ["account", `/accounts/${account}`],
    ["app", `/apps/${app}`],
    ["lists", `/accounts/${account}/lists`],
    ["do-not-call", `/accounts/${account}/do-not-call`],
    ["intakes", "/intakes"],
    ["intake", "/intakes/prod"],
    ["callbacks", "/callbacks"],
    ["audio", "/audio"],
    ["dialling", "/dialling"],
    ["trunks", "/trunks"],
    ["bills", "/bills"],
    ["bill-day", "/bills/2026-01-05"],
    ["try", "/try"],
    ["health", "/health"],
    ["settings", "/settings"],
    ["audit", "/audit"],
    ["nowhere", "/nowhere"],
  ];
}

async function look(page, [name, place], language, scheme) {
  await page.goto(place);
  const lang = await page.getAttribute("html", "lang");
  check(lang.startsWith(language), `${name} is in ${lang}`);
  const chrome = await page.innerText("h1, .narrow h1 >> nth=0");
  if (!named.includes(name)) {
    check(hanzi.test(chrome) === (language === "zh"), `${name}: ${chrome}`);
  }
  for (const width of widths) {
    await page.setViewportSize({ width, height: width < 500 ? 780 : 900 });
    const overhang = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    check(overhang <= 0, `${name} in ${language} is ${overhang} wider than ${width}`);
    if (pictures) await page.screenshot({ path: path.join(pictures, `${name}-${language}-${scheme}-${width}.png`), fullPage: true });
  }
  await isAccessible(page, `${name} in ${language}, ${scheme}`);
}

run(async (browser) => {
  const all = await screens();
  // A call that goes on while pictures are taken.
  await ask({ call: "13800000003" });
  for (const scheme of ["light", "dark"]) {
    for (const language of ["en", "zh"]) {
      // The colours are the same in both languages.
      if (scheme === "dark" && language === "zh" && !pictures) continue;
      const page = await open(browser, { language, scheme });
      await look(page, all[0], language, scheme);
      await signIn(page, "admin");
      page.removeAllListeners("console");
      page.on("console", (message) => {
        const isMissing = message.location().url === `${address}/nowhere`;
        if (["error", "warning"].includes(message.type()) && !isMissing) page.wrong.push(message.text());
      });
      for (const screen of all.slice(1)) await look(page, screen, language, scheme);
      // The switch leads to the same page in the other language.
      await page.goto("/calls?which=alive");
      await page.click(".who a[hreflang]");
      await page.waitForURL("**/calls?which=alive");
      const lang = await page.getAttribute("html", "lang");
      check(!lang.startsWith(language), "the switch changes the language");
      isClean(page);
      await page.context().close();
    }
  }
});

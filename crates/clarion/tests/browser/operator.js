// An operator with a real browser, for the other files here: opens it, watches what it complains about, and asks the test for calls.
//
// Standard output has one line of JSON for each thing that is wanted of the test (`ask`), standard input one line for each answer.
const readline = require("node:readline");
const fs = require("node:fs");
const { chromium } = require("playwright-core");

const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const address = process.env.CONSOLE_ADDRESS;
const password = process.env.CONSOLE_PASSWORD;

// Wants something of the test: `ask({ call: "13800000000" })` places a call and gives its callSid.
async function ask(wanted) {
  console.log(JSON.stringify(wanted));
  return (await answers.next()).value;
}

function check(condition, what) {
  if (!condition) throw new Error(what);
}

// Waits for what no page tells.
async function until(isSo, what) {
  const limit = Date.now() + 60000;
  while (!isSo()) {
    check(Date.now() < limit, `not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// A browser without a memory. What it must not do is noted: errors, violations of the policy, requests to other hosts.
async function open(browser, options = {}) {
  const context = await browser.newContext({
    baseURL: address,
    ignoreHTTPSErrors: true,
    locale: options.language === "zh" ? "zh-CN" : "en-GB",
    timezoneId: "America/Lima",
    colorScheme: options.scheme || "light",
    javaScriptEnabled: options.script !== false,
    viewport: { width: options.width || 1280, height: options.height || 900 },
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  const wrong = [];
  // A refused form is what was asked for.
  const refused = options.refused || /\/sign-in$/;
  page.on("console", (message) => {
    const isRefusal = message.text().startsWith("Failed to load resource") && refused.test(message.location().url);
    if (["error", "warning"].includes(message.type()) && !isRefusal) wrong.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`script: ${error}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(address)) wrong.push(`a request to ${request.url()}`);
  });
  page.wrong = wrong;
  page.hasScript = options.script !== false;
  return page;
}

async function signIn(page, name = "admin") {
  await page.goto("/sign-in");
  await page.fill("[name=name]", name);
  await page.fill("[name=password]", password);
  await page.click("button.main");
  await page.waitForURL((url) => !url.pathname.startsWith("/sign-in"));
}

function isClean(page) {
  check(page.wrong.length === 0, page.wrong.join("\n"));
}

// No serious findings about accessibility. The browser runs it beside the page, whose policy it does not touch.
async function isAccessible(page, what) {
  if (!page.hasScript) return;
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const told = serious.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(" | ")}`);
  check(serious.length === 0, `${what}: ${told.join("\n")}`);
}

// Runs one scenario with a browser of its own.
function run(scenario) {
  (async () => {
    const browser = await chromium.launch({
      executablePath: process.env.CHROMIUM,
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    });
    try {
      await scenario(browser);
    } finally {
      await browser.close();
    }
    process.exit(0);
  })().catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

module.exports = { ask, check, until, open, signIn, isClean, isAccessible, run, address, password };

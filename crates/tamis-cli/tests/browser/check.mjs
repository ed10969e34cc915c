// Opens a page in a headless browser and checks that a reader sees it: `node check.mjs PAGE [SCREENSHOT]`.
// Exit codes: 0 all checks hold; 1 one failed; 77 the browser does not start on this machine.

import { pathToFileURL } from "node:url";

import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [path, screenshot] = process.argv.slice(2);
const failures = [];
const check = (holds, text) => holds || failures.push(text);

let browser;
try {
  browser = await puppeteer.launch({
    args: [...chromium.args, "--no-sandbox"],
    executablePath: await chromium.executablePath(),
    headless: "shell",
  });
} catch (error) {
  console.error(`the browser does not start: ${error.message}`);
  process.exit(77);
}

const page = await browser.newPage();
// Narrower than the page's own limit: fonts differ by machine, and a wide one must wrap instead of widening the page.
const WIDTH = 700;
await page.setViewport({ width: WIDTH, height: 800 });
page.on("console", (message) => failures.push(`console: ${message.text()}`));
page.on("pageerror", (error) => failures.push(`error: ${error.message}`));
page.on("request", (request) => check(request.url().startsWith("file:"), `loads ${request.url()}`));
await page.goto(pathToFileURL(path).href);

// What is drawn, with its place on the page.
const seen = await page.evaluate(() => {
  const box = (element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return { x, y, width, height, text: element.textContent.trim() };
  };
  const all = (selector) => [...document.querySelectorAll(selector)].map(box);
  const plots = [...document.querySelectorAll("svg")].map((plot) => ({
    ...box(plot),
    texts: [...plot.querySelectorAll("text")].map(box),
    lines: [...plot.querySelectorAll("polyline")].map(box),
    bars: [...plot.querySelectorAll("rect")].map(box),
  }));
  const root = document.documentElement;
  return { plots, rows: all("table tr"), headings: all("h1, h2"), width: root.scrollWidth, title: document.title };
});

check(seen.title !== "", "the page has no title");
check(seen.headings.every(({ width, height, text }) => width > 0 && height > 0 && text !== ""), "a heading is not visible");
check(seen.rows.length >= 4, `${seen.rows.length} rows in tables`);
check(seen.width <= WIDTH, `the page is ${seen.width} pixels wide`);
check(seen.plots.length >= 2, `${seen.plots.length} plots`);
for (const [index, plot] of seen.plots.entries()) {
  check(plot.width > 100 && plot.height > 50, `plot ${index} is too small`);
  check(plot.bars.length + plot.lines.length > 0, `plot ${index} is empty`);
  check(plot.lines.every(({ width }) => width > 10), `plot ${index} has a line without an extent`);
  for (const { x, y, width, height, text } of plot.texts) {
    const isInside = x >= plot.x - 1 && y >= plot.y - 1
      && x + width <= plot.x + plot.width + 1 && y + height <= plot.y + plot.height + 1;
    check(isInside && width > 0, `plot ${index}: ${JSON.stringify(text)} is cut off`);
  }
}
if (screenshot) await page.screenshot({ path: screenshot, fullPage: true });
await browser.close();
failures.forEach((failure) => console.error(failure));
console.log(`${seen.plots.length} plots, ${seen.rows.length} rows, ${failures.length} failed checks`);
process.exit(failures.length > 0 ? 1 : 0);

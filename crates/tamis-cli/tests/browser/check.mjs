// Opens pages in a headless browser and checks that a reader sees them: `node check.mjs PAGE...`. Screenshots are written next to the pages.
// Exit codes: 0 all checks hold; 1 one failed; 77 the browser does not start on this machine.

import { pathToFileURL } from "node:url";

import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

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

// A telephone and a wide window.
const WINDOWS = [
  { width: 360, scheme: "dark" },
  { width: 360, scheme: "light" },
  { width: 1200, scheme: "light" },
  { width: 1200, scheme: "dark" },
];
let failureCount = 0;

// What is drawn, with its place on the page.
const look = () => {
  const box = (element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return { x, y, width, height, text: element.textContent.trim() };
  };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)].map(box);
  const colours = (element) => {
    const { color, backgroundColor } = getComputedStyle(element);
    return [color, backgroundColor].map((colour) => colour.match(/\d+/g).slice(0, 3).map(Number));
  };
  const drawings = [...document.querySelectorAll("svg")].filter((svg) => !svg.parentElement.closest("svg"));
  return {
    title: document.title,
    width: document.documentElement.scrollWidth,
    colours: colours(document.body),
    headings: all("h1, h2, h3"),
    words: all("h1, h2, h3, p, li, figcaption, .bar span"),
    figures: [...document.querySelectorAll("figure")].map((figure) => ({
      ...box(figure),
      caption: figure.querySelector("figcaption")?.textContent ?? "",
      svgs: all("svg", figure),
      bars: all("rect", figure),
    })),
    drawings: drawings.map((svg) => ({
      ...box(svg),
      texts: all("text", svg),
      lines: all("polyline", svg),
      bars: all("rect", svg),
    })),
  };
};

const overlap = (left, right) =>
  left.x < right.x + right.width && right.x < left.x + left.width && left.y < right.y + right.height && right.y < left.y + left.height;

const brightness = ([red, green, blue]) => 0.3 * red + 0.6 * green + 0.1 * blue;

const checkPage = (seen, { width, scheme }, check) => {
  check(seen.title !== "", "the page has no title");
  check(seen.headings.length >= 2 && seen.headings.every(({ height, text }) => height > 0 && text !== ""), "a heading is not visible");
  check(seen.width <= width, `the page is ${seen.width} pixels wide`);
  const [text, back] = seen.colours.map(brightness);
  check(scheme === "dark" ? text > back + 120 : back > text + 120, `text ${text} on ${back}`);
  for (const { x, width: wide, text: word } of seen.words) {
    check(x >= 0 && x + wide <= width + 1, `${JSON.stringify(word)} is cut off`);
  }
  for (const [index, figure] of seen.figures.entries()) {
    check(figure.caption.includes("; it would be bad if "), `figure ${index} does not say what would be bad`);
    check(figure.width > 0.8 * Math.min(width, 600), `figure ${index} is ${figure.width} pixels wide`);
    check(figure.svgs.length > 0, `figure ${index} has no picture`);
  }
  for (const [index, drawing] of seen.drawings.entries()) {
    check(drawing.width > 100 && drawing.height > 10, `drawing ${index} is too small`);
    check(drawing.bars.length + drawing.lines.length > 0, `drawing ${index} is empty`);
    check(drawing.lines.every((line) => line.width > 10), `drawing ${index} has a line without an extent`);
    const isInside = ({ x, y, width: wide, height }, margin) => x >= drawing.x - margin && y >= drawing.y - margin
      && x + wide <= drawing.x + drawing.width + margin && y + height <= drawing.y + drawing.height + margin;
    for (const [place, label] of drawing.texts.entries()) {
      check(isInside(label, 1) && label.width > 0, `drawing ${index}: ${JSON.stringify(label.text)} is cut off`);
      const others = drawing.texts.slice(place + 1).filter((other) => overlap(label, other));
      check(others.length === 0, `drawing ${index}: ${JSON.stringify(label.text)} covers ${JSON.stringify(others[0]?.text)}`);
    }
    check(drawing.bars.every((bar) => isInside(bar, 1)), `drawing ${index} has a bar that is cut off`);
  }
};

for (const path of process.argv.slice(2)) {
  const failures = [];
  let seen;
  for (const { width, scheme } of WINDOWS) {
    const page = await browser.newPage();
    const check = (holds, text) => holds || failures.push(`${path}, ${width} pixels, ${scheme}: ${text}`);
    await page.setViewport({ width, height: 800 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    page.on("console", (message) => check(false, `console: ${message.text()}`));
    page.on("pageerror", (error) => check(false, `error: ${error.message}`));
    page.on("request", (request) => check(request.url().startsWith("file:"), `loads ${request.url()}`));
    await page.goto(pathToFileURL(path).href);
    seen = await page.evaluate(look);
    checkPage(seen, { width, scheme }, check);
    await page.screenshot({ path: path.replace(/\.html$/, `-${width}-${scheme}.png`), fullPage: true });
    await page.close();
  }
  failures.forEach((failure) => console.error(failure));
  failureCount += failures.length;
  console.log(`${path}: ${seen.figures.length} figures, ${seen.drawings.length} drawings, ${failures.length} failed checks`);
}
await browser.close();
process.exit(failureCount > 0 ? 1 : 0);

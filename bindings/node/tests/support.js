'use strict'

// Folders, databases and child processes of the tests.

const { execFile, spawn } = require('node:child_process')
const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { TamisLevel } = require('tamis-level')

const undo = new WeakMap()

/** Calls `work` after a test; what was registered last is called first. */
function after (t, work) {
  if (!undo.has(t)) {
    undo.set(t, [])
    t.after(async () => { for (const work of undo.get(t).reverse()) await work() })
  }
  undo.get(t).push(work)
}

/** A folder that is removed after the test. */
function folder (t) {
  const created = mkdtempSync(path.join(tmpdir(), 'tamis-level-'))
  after(t, () => rmSync(created, { recursive: true, force: true }))
  return created
}

/** A database that is closed after the test. */
function create (t, options, location = path.join(folder(t), 'store')) {
  const db = new TamisLevel(location, options)
  after(t, () => db.close())
  return db
}

/** An open database that is closed after the test. */
async function open (t, options, location) {
  const db = create(t, options, location)
  await db.open()
  return db
}

/** Runs a program as a process; resolves with its exit code, its signal and its output. */
function run (program, ...args) {
  return new Promise(resolve => {
    const options = { cwd: path.join(__dirname, '..') }
    execFile(process.execPath, ['-e', program, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, signal: error?.signal ?? null, stdout, stderr }))
  })
}

/** Starts a program and kills it after its first line of output. */
function runAndKill (program, ...args) {
  return new Promise(resolve => {
    const child = spawn(process.execPath, ['-e', program, ...args], { cwd: path.join(__dirname, '..') })
    child.stdout.once('data', () => child.kill('SIGKILL'))
    child.once('close', (code, signal) => resolve(signal))
  })
}

/** A generator of numbers below a limit, from a seed. */
function random (seed) {
  let state = BigInt(seed)
  return limit => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n)
    return Number(state >> 33n) % limit
  }
}

exports.create = create
exports.folder = folder
exports.open = open
exports.random = random
exports.run = run
exports.runAndKill = runAndKill

'use strict'

// abstract-level's own test suite.

const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const test = require('tape')
const suite = require('abstract-level/test')
const { TamisLevel } = require('tamis-level')

const folder = mkdtempSync(path.join(tmpdir(), 'tamis-level-'))
let count = 0

suite({
  test,
  factory (options) {
    return new TamisLevel(path.join(folder, String(++count)), options)
  }
})

test.onFinish(() => rmSync(folder, { recursive: true }))

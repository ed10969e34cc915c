'use strict'

// The programs of the guide and of the README run as they are.

const assert = require('node:assert/strict')
const { execFileSync } = require('node:child_process')
const { mkdirSync, readFileSync, symlinkSync, writeFileSync } = require('node:fs')
const path = require('node:path')
const test = require('node:test')
const { folder } = require('./support')

const root = path.join(__dirname, '..')

/** Runs the JavaScript of a page as one program; returns its output. */
function run (t, page) {
  const place = folder(t)
  const blocks = Array.from(readFileSync(page, 'utf8').matchAll(/```js\n(.*?)```/gs), ([, code]) => code)
  assert.ok(blocks.length > 0)
  writeFileSync(path.join(place, 'program.mjs'), blocks.join('\n'))
  mkdirSync(path.join(place, 'node_modules'))
  symlinkSync(root, path.join(place, 'node_modules', 'tamis-level'))
  return execFileSync(process.execPath, ['program.mjs'], { cwd: place, encoding: 'utf8' })
}

test('the guide', t => {
  const output = run(t, path.join(root, '..', '..', 'docs', 'guide', 'javascript.md'))
  assert.equal(output, '{ celsius: 21 }\nroof!0000 20\nroof!0060 21\nroof!0060\n')
})

test('the README', t => {
  assert.equal(run(t, path.join(root, 'README.md')), 'apple red\n')
})

'use strict'

// Loads the native module of this system, which `bindings/node/build` puts into `prebuilds`.

const { existsSync } = require('node:fs')
const path = require('node:path')

const system = `${process.platform}-${process.arch}`
const file = path.join(__dirname, 'prebuilds', system, 'tamis-level.node')

if (!existsSync(file)) {
  throw new Error(`tamis-level has no native module for ${system}: build it with bindings/node/build of the Tamis repository`)
}

module.exports = require(file)

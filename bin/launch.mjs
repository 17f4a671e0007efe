#!/usr/bin/env node
// Starts one of our scripts on a Node that fits it. An older Node reads only this file and tokenmill.mjs. In a checkout
// this file installs the dependencies where they are missing, then hands over to the Node that npm brought along; the
// installed package takes the Node that runs it. What it starts ends with it, however it ends: where Node can, it becomes
// that process itself.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Else this is the installed package, whose sources are compiled. */
const isCheckout = existsSync(join(root, 'cli/main.ts'))

/** The command's script. */
export const MAIN = isCheckout ? 'cli/main.ts' : 'cli/main.js'

/** Without them a heap grows to three times what it needs before it is swept (docs/performance/history.md). */
export const HEAP_FLAGS = ['--max-semi-space-size=32', '--heap-growing-percent=40']

/** Runs `npm ci` once where `node_modules` is absent; npm writes its own log there last, so its presence means "done". */
function install() {
  if (existsSync(join(root, 'node_modules/.package-lock.json'))) return
  process.stderr.write('tokenmill: installing dependencies (npm ci) ...\n')
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  })
  if (npm.status !== 0) {
    process.stderr.write(
      'tokenmill: npm ci failed; see its messages above, mend that, then run the same command again.\n',
    )
    process.exit(1)
  }
}

const isFit = version => Number.parseInt(version, 10) >= 24

/** The first Node of version 24 or newer: the one npm installed beside the dependencies, else the one running this. */
function findNode() {
  const bundled = isCheckout ? findBundled() : undefined
  if (bundled !== undefined) return bundled
  if (isFit(process.versions.node)) return process.execPath
  process.stderr.write(
    `tokenmill: needs Node 24 or newer; this is ${process.versions.node}${isCheckout ? ' and no bundled one fits this machine' : ''}. Install Node 24, then run the same command again.\n`,
  )
  return process.exit(78)
}

/** What starts a program that is linked against glibc; a system of musl has none, and can't run the bundled Node. */
const LOADERS = { x64: '/lib64/ld-linux-x86-64.so.2', arm64: '/lib/ld-linux-aarch64.so.1' }

/** The Node that npm brought, where it fits this machine. Its package says so: to run it and ask would take as long again. */
function findBundled() {
  const node = join(root, 'node_modules/.bin/node')
  try {
    const folder = dirname(dirname(realpathSync(node)))
    const { version, os, cpu } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const fits = isFit(version) && os === process.platform && cpu === process.arch && existsSync(LOADERS[cpu] ?? '')
    return fits ? node : undefined
  } catch {
    return undefined
  }
}

/** Help needs no heap of a set size: this process prints it, so that Node starts once. */
function isHelp(args) {
  return args.length === 0 || args.some(word => ['-h', '--help', '-V', '--version'].includes(word))
}

/** Runs `script` to its end with our standard streams and our signals; the exit status is the script's. */
export function launch(script, args) {
  if (isCheckout) install()
  const node = findNode()
  if (!isCheckout && isHelp(args)) {
    import(pathToFileURL(join(root, script)).href).then(({ main }) => main())
    return
  }
  const words = [...HEAP_FLAGS, resolve(root, script), ...args]
  const own = {
    ...(isCheckout && settingsOfCheckout()),
    // Else glibc keeps freed memory apart for each thread, some 10 MiB a process.
    MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX ?? '1',
  }
  const env = { ...process.env, ...own }
  if (canBecome()) process.execve(node, [node, ...words], env)
  else runChild(node, words, env)
}

function settingsOfCheckout() {
  return {
    // Scripts find the tools that npm installed.
    PATH: [join(root, 'node_modules/.bin'), process.env.PATH].join(':'),
    // Compiled code is kept beside the dependencies, where only those write who may change the code itself. So every
    // process of ours starts faster. Nothing is written into the installed package.
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/tokenmill'),
  }
}

/** Node has `execve` since 22.15; on these systems it only throws. Elsewhere it can't fail: the `node` found fits this machine. */
function canBecome() {
  return typeof process.execve === 'function' && !['win32', 'os400'].includes(process.platform)
}

/**
 * Runs the script as a child. The end of the child's channel tells it that this process has ended (`endWithParent` in
 * src/lifetime.ts).
 */
function runChild(node, words, env) {
  const child = spawn(node, words, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], env })
  // A terminal sends Ctrl-C to the whole group; a signal sent to us alone has to be passed on.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    })
  }
  child.on('exit', (code, signal) => process.exit(signal ? 128 + (constants.signals[signal] ?? 0) : (code ?? 1)))
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [script, ...args] = process.argv.slice(2)
  if (!script) {
    process.stderr.write('usage: launch.mjs SCRIPT [ARGUMENT...]\n')
    process.exit(64)
  }
  launch(script, args)
}

// `npm run check`: types, lint and the tests that reach no server, browser or process, in less than a minute and a half.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { closedTests } from './support/run/closed-tests.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

function quickTests(): string[] {
  const entries = readdirSync(join(root, 'test'), { recursive: true, withFileTypes: true })
  const files = entries.filter(entry => entry.isFile() && entry.name.endsWith('.ts'))
  const paths = files.map(file => relative(root, join(file.parentPath, file.name)))
  return closedTests(new Map(paths.map(path => [path, readFileSync(join(root, path), 'utf8')])))
}

function step(name: string, program: string, args: string[]): boolean {
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...CLOSED } })
  if (status !== 0) process.stderr.write(`check: ${name} failed\n`)
  return status === 0
}

/** Tells the run to start no server (run/setup.ts). */
const CLOSED = { TOKENMILL_TEST_CLOSED: '1' }
const bin = (name: string) => join(root, 'node_modules/.bin', name)
const holds = [
  step('types', bin('tsc'), ['--noEmit']),
  step('lint', bin('biome'), ['check', '.']),
  step('tests', process.execPath, [join(root, 'test/run.ts'), ...quickTests()]),
]
process.exitCode = holds.every(Boolean) ? 0 : 1

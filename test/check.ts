// `npm run check`: types, lint and the tests that need no server or child process, in a few seconds.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const SERVICES = /\/(postgres|redis|engines|process|command-bench)\.ts'/

function quickTests(): string[] {
  const files = readdirSync(join(root, 'test'), { recursive: true, withFileTypes: true })
  const tests = files.filter(file => file.name.endsWith('.test.ts')).map(file => join(file.parentPath, file.name))
  return tests.filter(file => !SERVICES.test(readFileSync(file, 'utf8'))).map(file => relative(root, file))
}

function step(name: string, program: string, args: string[]): boolean {
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.stderr.write(`check: ${name} failed\n`)
  return status === 0
}

const bin = (name: string) => join(root, 'node_modules/.bin', name)
const holds = [
  step('types', bin('tsc'), ['--noEmit']),
  step('lint', bin('biome'), ['check', '.']),
  step('tests', process.execPath, [join(root, 'test/run.ts'), ...quickTests()]),
]
process.exitCode = holds.every(Boolean) ? 0 : 1

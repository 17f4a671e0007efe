// Prints each file with its tests and durations, failures with their reasons, all failures again at the end, and as the
// last line `N passed, N failed`. A run in which no test ran counts as failed.
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

interface Problem {
  message?: string
  stack?: string
  diff?: string
}

/** The last line is written when this process exits, after every teardown. */
export function openReporter(write: (text: string) => void = text => process.stdout.write(text)): Reporter {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const failures: string[] = []
  const began = performance.now()
  const print = (text: string) => write(`${text}\n`)
  const fail = (where: string, reasons: readonly Problem[]) => {
    counts.failed++
    failures.push([`✗ ${where}`, ...reasons.map(describe)].join('\n'))
    for (const reason of reasons) print(describe(reason))
  }

  process.once('exit', code => {
    // A run that failed for another reason than a test counts as one failure.
    if (code !== 0 && counts.failed === 0) counts.failed = 1
    if (counts.passed + counts.failed === 0) {
      print('\nno test ran: that is a failure')
      counts.failed = 1
    }
    if (counts.failed > 0) process.exitCode = code || 1
    if (failures.length > 0) print(`\nfailed:\n\n${failures.join('\n\n')}`)
    print(`\n${seconds(performance.now() - began)}`)
    print(closingLine(counts))
  })

  return {
    onUserConsoleLog: log => void process.stderr.write(log.content),
    onTestModuleEnd: module => {
      const tests = [...module.children.allTests()]
      const file = relative(process.cwd(), module.moduleId)
      print(`\n${file} (${tests.length} tests, ${seconds(module.diagnostic().duration)})`)
      for (const test of tests) {
        const { state, errors } = test.result()
        print(`  ${MARK[state] ?? '-'} ${test.fullName}${timeOf(test)}`)
        if (state === 'failed') fail(`${file} > ${test.fullName}`, errors ?? [])
        else counts[state === 'passed' ? 'passed' : 'skipped']++
      }
      for (const error of [...(module.errors() as Problem[]), ...suiteErrors(module)]) fail(file, [error])
    },
    onTestRunEnd: (_modules, unhandled) => {
      for (const error of unhandled) {
        print('\nunhandled, outside any test:')
        fail('unhandled, outside any test', [error as Problem])
      }
    },
  }
}

const MARK: Record<string, string> = { passed: '✓', failed: '✗', skipped: '-' }

export function closingLine(counts: { passed: number; failed: number; skipped: number }): string {
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
  return `${counts.passed} passed, ${counts.failed} failed${skipped}`
}

/** Errors of hooks, which belong to no test. */
function suiteErrors(module: TestModule): Problem[] {
  return [...module.children.allSuites()].flatMap(suite => suite.errors() as Problem[])
}

function timeOf(test: TestCase): string {
  const ms = test.diagnostic()?.duration
  return ms === undefined ? '' : ` (${seconds(ms)})`
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

/** What the loader of tests adds to a path. */
const LOADED = /file:\/\/|\?vitest=\d+/g

function describe({ message = '', stack = '', diff }: Problem): string {
  const frames = stack.split('\n').filter(line => /^\s+at /.test(line) && !line.includes('node_modules'))
  const text = [message, diff, ...frames.slice(0, 8).map(line => line.trim().replace(LOADED, ''))]
    .filter(Boolean)
    .join('\n')
  return (process.stdout.isTTY ? text : stripVTControlCharacters(text)).replace(/^/gm, '      ')
}

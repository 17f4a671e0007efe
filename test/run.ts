// `npm test`: every test, or those that the arguments name (they are vitest's: paths, -t PATTERN).
import { parseCLI, startVitest } from 'vitest/node'
import { openReporter } from './support/run/reporter.ts'

process.env['TOKENMILL_TEST_RUN'] = '1'
const reporter = openReporter()
const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)])
try {
  const vitest = await startVitest('test', filter, { ...options, watch: false, reporters: [reporter] })
  await vitest.close()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
  process.exitCode = 1
}
process.exit()

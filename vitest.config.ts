// How tests run: each file in a process of its own, two at a time, against real servers (test/support/setup.ts).
import { defineConfig } from 'vitest/config'
import { openReporter } from './test/support/reporter.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    pool: 'forks',
    maxWorkers: 2,
    globalSetup: ['test/support/setup.ts'],
    // A condition awaited with its own deadline says more than a test that is cut off: these are the last resort.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    passWithNoTests: false,
    reporters: process.env['TOKENMILL_TEST_RUN'] ? [] : [openReporter()],
  },
})

import { expect, it } from 'vitest'
import { closedTests } from './closed-tests.ts'

it('of `npm run check` are those that reach nothing which opens a server, a browser or a process', () => {
  const texts = new Map([
    ['test/pure.test.ts', "import { expect } from 'vitest'\nimport { rule } from '../src/rule.ts'"],
    ['test/names.test.ts', "const line = `import { chromium } from 'playwright-core'`"],
    ['test/type.test.ts', "import type { Client } from 'pg'\nimport { samples } from './samples.ts'"],
    ['test/samples.ts', 'export const samples = []'],
    ['test/direct.test.ts', "import {\n  fork,\n} from 'node:child_process'"],
    ['test/far.test.ts', "import { openBundle } from './room/bundle.ts'"],
    ['test/later.test.ts', "const { openBundle } = await import('./room/bundle.ts')"],
    ['test/circle.test.ts', "import './a.ts'"],
    ['test/a.ts', "import { b } from './b.ts'"],
    ['test/b.ts', "export { a } from './a.ts'"],
    ['test/room/bundle.ts', "export { open } from '../support/open.ts'"],
    ['test/support/open.ts', "import { Redis } from 'ioredis'"],
  ])
  expect(closedTests(texts)).toEqual([
    'test/circle.test.ts',
    'test/names.test.ts',
    'test/pure.test.ts',
    'test/type.test.ts',
  ])
})

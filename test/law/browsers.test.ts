// Browsers of tests are opened in one place, which listens to every page. A test that launched one itself could forget to.
import { describe, expect, it } from 'vitest'
import { code, expectNone } from './tree.ts'

const PLACE = 'test/examples/chromium.ts'
/** Imports of values; a type launches nothing. */
const LAUNCHES =
  /^\s*import (?!type\b)(?:(?!\bfrom\b)[^;])*from ['"]playwright[\w-]*['"]|\b(?:import|require)\(['"]playwright/gm

const launched = (text: string) => text.match(LAUNCHES) ?? []

describe('a browser', () => {
  it('is opened in one place', () => {
    expectNone(
      code.filter(({ path }) => path !== PLACE && path !== 'test/law/browsers.test.ts'),
      ({ text }) => launched(text),
    )
    expect(code.filter(({ path }) => path === PLACE).flatMap(({ text }) => launched(text))).toHaveLength(1)
  })

  it('that is opened elsewhere is found', () => {
    expect(launched(`import { chromium } from 'playwright-core'`)).toHaveLength(1)
    expect(launched(`const { chromium } = await import('playwright-core')`)).toHaveLength(1)
    expect(launched(`import type { Page } from 'playwright-core'`)).toEqual([])
  })
})

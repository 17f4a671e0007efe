// Runs axe-core in a page without loosening its content security policy: in a world of scripts of its own, which a browser gives
// to its developer tools.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { CDPSession } from 'playwright-core'

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** The rules whose answer may be another one with other colours. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block']

interface Violation {
  id: string
  nodes: { html: string; failureSummary?: string }[]
}

/** Says what is wrong with the page as it is shown: a line for each element. `colours`: by the rules about colours alone. */
export type FindWrong = (rules: 'all' | 'colours') => Promise<string[]>

/**
 * Puts axe-core beside the page that is shown now; another page needs it anew. The first look also reads the styles, for the one rule
 * about them (a page that is locked to one way of holding a phone): they are the same in every look.
 */
export async function openAxe(cdp: CDPSession): Promise<FindWrong> {
  const { frameTree } = await cdp.send('Page.getFrameTree')
  const frame = { frameId: frameTree.frame.id, worldName: 'axe' }
  const { executionContextId: contextId } = await cdp.send('Page.createIsolatedWorld', frame)
  await cdp.send('Runtime.evaluate', { contextId, expression: `${SOURCE}; undefined` })
  let isFirst = true
  return async rules => {
    const runOnly = rules === 'all' ? { type: 'tag', values: TAGS } : { type: 'rule', values: OF_COLOURS }
    const options = JSON.stringify({ runOnly, resultTypes: ['violations'], preload: isFirst })
    isFirst = false
    const run = await cdp.send('Runtime.evaluate', {
      contextId,
      expression: `axe.run(document, ${options}).then(({ violations }) => JSON.stringify(violations))`,
      awaitPromise: true,
      returnByValue: true,
    })
    if (run.exceptionDetails) throw new Error(run.exceptionDetails.exception?.description ?? run.exceptionDetails.text)
    const violations = JSON.parse(String(run.result.value)) as Violation[]
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary = '' }) => `${id}: ${html} ${failureSummary.replace(/\s+/g, ' ')}`),
    )
  }
}

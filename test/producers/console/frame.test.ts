// The frame of every page: which installation it is.
import { expect, it } from 'vitest'
import { html } from '../../../producers/console/html.ts'
import { framed } from '../../../producers/console/server/page.ts'
import { readConsoleSettings } from '../../../producers/console/settings.ts'

const page = { title: 'One page', session: null, content: html`<h1>One page</h1>` }
const shown = (environment: string | undefined) => framed({ name: 'tokens', environment }, page).toString()
const read = (word: string) => readConsoleSettings({ TOKENMILL_ENVIRONMENT: word }).environment

it('shows the environment as a word, PRODUCTION alone in colour', () => {
  expect(shown('PRODUCTION')).toContain('<strong class="environment production">PRODUCTION</strong>')
  expect(shown('STAGING')).toContain('<span class="environment">STAGING</span>')
  expect(shown(undefined)).not.toContain('class="environment')
})

it('takes a short word as the environment, and shows it in capitals', () => {
  expect(read('production')).toBe('PRODUCTION')
  expect(read('EU-West 2')).toBe('EU-WEST 2')
  expect(read('A')).toBe('A')
  expect(readConsoleSettings({}).environment).toBeUndefined()
  // As docker-compose.yml gives it, if nobody chose a word.
  expect(read('')).toBeUndefined()
  for (const wrong of ['seventeen letters', ' TEST', 'TEST ', 'TEST\n', '<b>', 'ＰＲＯＤ', 'PRODUCTION!'])
    expect(() => read(wrong), JSON.stringify(wrong)).toThrow('TOKENMILL_ENVIRONMENT: must be a word of at most 16')
})

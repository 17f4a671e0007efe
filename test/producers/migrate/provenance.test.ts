import { expect, it } from 'vitest'
import { provenanceOf } from '../../../producers/migrate/provenance.ts'
import { testPan } from '../../support/test-pan.ts'

it('a manifest repeats the command line as it was given, but no word that could be a card number', () => {
  const command = ['migrate', 'cards 2.csv', '--batch-id', testPan(1), '--results', `r-${testPan(2)}.csv`]
  const { command: told, operator } = provenanceOf({ command, osUser: 'meyer' }, 'acme', undefined)
  expect(told).toEqual(['migrate', 'cards 2.csv', '--batch-id', '*'.repeat(16), '--results', `r-${'*'.repeat(16)}.csv`])
  expect(operator).toEqual({ client_id: 'acme', os_user: 'meyer' })
})

it('a manifest repeats no card number that stands in several words', () => {
  const [four = '', six = '', five = ''] = (/^(....)(......)(.....)$/.exec('378282246310005') ?? []).slice(1)
  const groups = testPan(1).match(/..../g) ?? []
  const told = (...command: string[]) => provenanceOf({ command }, 'acme', undefined).command
  expect(told('migrate', '--in-flight', '16', ...groups, '2')).toEqual([
    ...['migrate', '--in-flight', '16'],
    ...groups.map(() => '****'),
    '2',
  ])
  expect(told(`--x=${groups[0]}`, ...groups.slice(1, 3), `${groups[3]}.csv`)).toEqual([
    ...['--x=****', '****', '****', '****.csv'],
  ])
  expect(told(four, six, five)).toEqual(['****', '******', '*****'])
  expect(told(testPan(1).slice(0, 7), testPan(1).slice(7), 'cards-4.csv')).toEqual([
    '*******',
    '*********',
    'cards-4.csv',
  ])
})

it('a manifest says that its input was not encrypted, and nothing of a command that nobody gave', () => {
  expect(provenanceOf({}, 'acme', undefined)).toEqual({ operator: { client_id: 'acme' }, pgp_keys: null })
})

// Two operators, for commands that need both: the first one asks, the second one confirms.
import { expect } from 'vitest'
import type { Installation } from '../../support/installation.ts'
import { cli } from '../command-bench.ts'

export interface TwoOperators {
  /** The client of the first one. */
  clientId: string
  /** The options that the first operator adds to a command. */
  signed: string[]
  /** The options that the second operator adds. */
  others: string[]
  /** Runs the command as the first operator, who is asked for a confirmation, and confirms it as the second one. */
  confirm(words: readonly string[], env: NodeJS.ProcessEnv): Promise<void>
}

export async function openTwoOperators({ addClient }: Pick<Installation, 'addClient'>): Promise<TwoOperators> {
  const [one, other] = [await addClient('asker', { roles: ['ADMIN'] }), await addClient('second', { roles: ['ADMIN'] })]
  const signed = ['--operator', one.clientFile]
  const others = ['--operator', other.clientFile]
  return {
    clientId: one.credentials.signingKey.clientId,
    signed,
    others,
    async confirm(words, env) {
      const asked = await cli([...words, ...signed], { env })
      const id = confirmationIn(asked)
      expect(await cli(['key', 'confirm', id, ...others, '--yes'], { env })).toMatchObject({ status: 0, stderr: '' })
    },
  }
}

/** The id that a command names which asks for a second operator. */
export function confirmationIn({ status, stderr }: { status: number; stderr: string }): string {
  expect({ status, stderr }).toEqual({ status: 5, stderr: expect.stringMatching(/Nothing was done yet/) })
  return /tokenmill key confirm ([0-9a-f]+) /.exec(stderr)?.[1] ?? ''
}

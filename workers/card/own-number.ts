// Masks the names (jti, reference) of a job that was refused before its card was decrypted, or that failed. The names
// are stored and answered, so they must not hold the job's own card number. An encrypted card is decrypted only for
// this comparison. src/job/pan-in-names.ts refuses such names.
import { isRefusal, toFault } from '../../src/errors.ts'
import { clearNumbersOf, couldHoldNumber, nameRefusal, withoutOwnPan } from '../../src/job/pan-in-names.ts'
import { numbersIn } from '../../src/token/pan.ts'
import { openCardByLine } from '../../src/vault/capture/line.ts'
import type { Deps } from '../deps.ts'
import type { Work } from '../work.ts'
import { openForClient } from './open-capture.ts'

export async function withoutOwnNumber<R>(work: Work<R>, deps: Pick<Deps, 'directory'>): Promise<Work<R>> {
  return { ...work, claims: withoutOwnPan(work.claims, await numbersOf(work, deps), work.client.names) }
}

export async function isNamedAfterItsCard(work: Work<unknown>, deps: Pick<Deps, 'directory'>): Promise<boolean> {
  return nameRefusal(work.claims, await numbersOf(work, deps)) !== undefined
}

async function numbersOf({ claims, client }: Work<unknown>, { directory }: Pick<Deps, 'directory'>): Promise<string[]> {
  const { request, jti, reference } = claims
  const clear = clearNumbersOf(request)
  const { encrypted_card: encrypted, public_key_alias: alias } = request
  const named = [jti, reference].some(couldHoldNumber)
  if (!named || typeof encrypted !== 'string' || typeof alias !== 'string') return clear
  try {
    const opened = await openForClient({ alias, client }, directory, line => openCardByLine(encrypted, line))
    return isRefusal(opened) ? clear : [...clear, ...numbersIn(opened.plaintext.reveal())]
  } catch (error) {
    const { code } = toFault(error)
    if (code !== 'key_unavailable' && code !== 'kek_away') throw error
    // The card can't be read, so any number that could be a card's counts as its number.
    return [...clear, ...numbersIn(`${jti} ${reference ?? ''}`)]
  }
}

// The input of (b): a CSV file in which every row holds a card that is encrypted to the client's RSA-2048 capture key.
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { panOf } from '../bin/sample/pan.ts'
import { encryptCard } from '../src/vault/capture/encrypt.ts'
import type { Installation } from '../test/support/installation.ts'

export async function writeEncrypted(path: string, rows: number, { credentials }: Installation): Promise<void> {
  const key = credentials.captureKeys.jwe
  if (!key) throw new Error('the bench client has a JWE capture key')
  const out = createWriteStream(path)
  out.write('reference,encrypted_card,public_key_alias\n')
  const captureTime = new Date().toISOString()
  for (let index = 0; index < rows; index += 1) {
    const card = { cardNumber: panOf(index, 3), expiryMonth: 12, expiryYear: 2030, captureTime }
    if (!out.write(`r-${index},${await encryptCard(card, key)},${key.alias}\n`)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'finish')
}

// The member `new_keys` beside what the installation signs. Which of its statements hold is decided elsewhere.
import { z } from 'zod'

/** How many statements a reader looks at: many more than an installation announces while they travel. */
const READ_MAX = 64

/**
 * Statements that announce newer signing keys, oldest first. If there are more than 64, the newest are read, so that no
 * result is lost.
 */
export const NewKeys = z.array(z.string()).transform(all => all.slice(-READ_MAX))

<?php

use PHPUnit\Framework\TestCase;

final class CartTest extends TestCase
{
    public function testPasses(): void
    {
        $this->assertTrue(true);
    }

    public function testFails(): void
    {
        $this->assertSame(3, 1 + 1);
    }

    public function testIsSkipped(): void
    {
        $this->markTestSkipped('not today');
    }

    public function testMisbehaves(): void
    {
        if (getenv('MISBEHAVE') === 'crash') {
            exit(3);
        }
        if (getenv('MISBEHAVE') === 'hang') {
            sleep(3600);
        }
        $this->assertTrue(true);
    }
}
